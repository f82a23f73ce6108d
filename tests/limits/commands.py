"""A run through the real command line: `scoreline batch run` beside `scoreline batch run`, one provider.

Each command has executors of its own, on the same servers, and calls the same model with the same key. The
provider is `scoreline provider-sim` in this process; it writes down when each call came and went.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from domain.batch_spec import Limits
from scoreline.provider_sim.stats import CallStats
from tests.limits.measure import Call, InForce, violations
from tests.limits.plans import draw_limits
from tests.provider import provider
from tests.waiting import until

SCORELINE = Path(sys.executable).parent / "scoreline"
LATENCY = 0.3
LAG = 0.5
"""Seconds that a call may arrive after its permit was granted, on a machine with both cores busy."""
CASES = 400
WATCHED = 20.0
TIMEOUT = 90.0


@dataclass(slots=True)
class RecordingStats(CallStats):
    """Statistics that remember each call; all take equally long, so they end in order."""

    recorded: list[Call] = field(default_factory=list)
    open: deque[Call] = field(default_factory=deque)

    def began(self) -> None:
        """Remember a call, by the batch that its prompt names."""
        CallStats.began(self)
        text = json.dumps(self.bodies[-1]["messages"])
        call = Call(text.partition("batch ")[2].partition(" ")[0], asyncio.get_running_loop().time())
        self.recorded.append(call)
        self.open.append(call)

    def answer(self, digest: int, input_tokens: int, output_tokens: int) -> None:
        """Remember the tokens of the call that has been open for longest and is not answered."""
        CallStats.answer(self, digest, input_tokens, output_tokens)
        next(call for call in self.open if not call.tokens).tokens = input_tokens + output_tokens

    def ended(self) -> None:
        """Remember the end of a call."""
        CallStats.ended(self)
        self.open.popleft().ended = asyncio.get_running_loop().time()


@dataclass(slots=True)
class Command:
    """One batch: its limits, when its command is started, and the process."""

    name: str
    limits: Limits
    begins: float
    process: "subprocess.Popen[bytes] | None" = None
    over: float = 0.0

    @property
    def flags(self) -> list[str]:
        """Write the limits as they are typed."""
        limits = self.limits
        typed = {
            "--rpm-limit": limits.rpm,
            "--tpm-limit": limits.tpm,
            "--max-concurrency": limits.max_concurrency,
            "--delay": limits.delay or None,
        }
        return [word for flag, value in typed.items() if value for word in (flag, f"{value:g}")]

    def start(self, folder: Path, environ: dict[str, str]) -> None:
        """Start the command."""
        cases = (json.dumps({"input": f"batch {self.name} number {n}"}) for n in range(CASES))
        (folder / f"{self.name}.jsonl").write_text("\n".join(cases) + "\n")
        words = ["--dataset", f"{self.name}.jsonl", "--target", "anthropic/claude-haiku-4-5"]
        words += ["--evaluator", "contains:batch", "--workers", "1", "--concurrency", "32", "--json"]
        self.process = subprocess.Popen(
            [SCORELINE, "batch", "run", *words, *self.flags],
            cwd=folder,
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    async def stop(self) -> None:
        """Interrupt the command, if it still runs, and wait for its end."""
        self.over = asyncio.get_running_loop().time()
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        if self.process:
            await asyncio.to_thread(self.process.wait, TIMEOUT)

    def in_force(self, calls: list[Call]) -> list[InForce]:
        """Return when the batch's limits were in force: from first call to last, or its interrupt."""
        own = [call.started for call in calls if call.batch_id == self.name and call.started <= self.over]
        overall = self.limits.max_concurrency
        return [InForce(self.name, self.limits, min(own), max(own), overall)] if own else []


def draw_commands(seed: int) -> list[Command]:
    """Draw two or three batches with any mix of limits, at least one of them limited."""
    random = Random(seed)
    names = ["A", "B", "C"][: random.randint(2, 3)]
    drawn = [Command(name, draw_limits(random), random.choice([0.0, 3.0])) for name in names]
    return drawn if any(each.flags for each in drawn) else draw_commands(seed + 1_000_003)


async def run_commands(
    commands: list[Command], folder: Path, *, watched: float = WATCHED
) -> tuple[list[str], int]:
    """Run the commands, and return which limits were exceeded, and how many calls there were."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("EVAL_")}
    async with provider(mode="echo", latency=LATENCY, limit_headers=False) as sim:
        stats = RecordingStats()
        sim._calls.stats = stats
        environ = own | {
            "EVAL_DATA_DIR": str(folder / "data"),
            "ANTHROPIC_BASE_URL": sim.base_url,
            "ANTHROPIC_API_KEY": "key-0123456789",
        }
        try:
            for command in sorted(commands, key=lambda each: each.begins):
                await asyncio.sleep(command.begins)
                command.start(folder, environ)
            await _until_all_call(stats, commands)
            await asyncio.sleep(watched)
        finally:
            await asyncio.gather(*(command.stop() for command in commands))
        calls = list(stats.recorded)
        in_force = [limit for command in commands for limit in command.in_force(calls)]
    return violations(calls, in_force, lag=LAG), len(calls)


async def _until_all_call(stats: RecordingStats, commands: list[Command]) -> None:
    """Wait until every batch has made a call."""
    names = {command.name for command in commands}
    await until(lambda: {call.batch_id for call in stats.recorded} >= names, TIMEOUT)
