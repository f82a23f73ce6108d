"""Concurrent local runs: `python -m tests.acceptance.concurrent_runs --rounds 50`.

Each round starts two to four `scoreline batch run` at once on the same embedded servers, each with its own
environment, folder and interpreter, and a target that answers with all three; some are interrupted and
resumed. No answer may come from another run, every evaluation must pass, and no process and no listing may
be left behind.
"""

import argparse
import asyncio
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from redis import Redis

from eventlog.keys import DEFAULT_SHARDS
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers
from scoreline.servers.addresses import Servers
from taskqueue.keys import BATCHES, EXECUTORS
from tests.acceptance.batch_commands import TIMEOUT, Folder, Ran, gone
from tests.waiting import until

APP = """
import hashlib, os, pathlib, sys, time

HERE = pathlib.Path(__file__).parent

def who(prompt):
    with open(HERE / "calls", "a") as calls:
        calls.write("called\\n")
    time.sleep(0.01)
    key = hashlib.sha256(os.environ.get("KEY", "none").encode()).hexdigest()
    return " ".join([os.environ.get("WHO", "none"), key, os.getcwd(), sys.prefix])
"""
CASES = (8, 40)
RUN = (
    "batch",
    "run",
    "--json",
    "--dataset",
    "cases.jsonl",
    "--target",
    "python:app:who",
    "--evaluator",
    "exact",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One run of a round."""

    who: str
    cases: int
    workers: int
    interpreter: str
    interrupts: bool


class MixedUp(AssertionError):  # noqa: N818 - what happened
    """A run got something that is another's, or left something behind."""


def plans(random: Random, interpreters: Sequence[str]) -> list[Plan]:
    """Draw the runs of a round."""
    return [
        Plan(
            who=f"run-{number}-{random.randrange(10**6)}",
            cases=random.randint(*CASES),
            workers=random.randint(1, 2),
            interpreter=interpreters[number % len(interpreters)],
            interrupts=random.random() < 0.3,
        )
        for number in range(random.randint(2, 4))
    ]


async def play(root: Path, servers: Servers, runs: Sequence[Plan]) -> None:
    """Play one round; raises `MixedUp`."""
    folders = [_folder(root, servers, plan) for plan in runs]
    await asyncio.gather(*(_run(folder, plan) for folder, plan in zip(folders, runs, strict=True)))
    _check_nothing_left(servers, runs)


def _folder(root: Path, servers: Servers, plan: Plan) -> Folder:
    (root / plan.who).mkdir(parents=True)
    folder = Folder(root / plan.who, servers.redis_url, servers.postgres_url)
    folder.write("app.py", APP)
    key = hashlib.sha256(_key(plan).encode()).hexdigest()  # a key itself would be redacted
    answer = f"{plan.who} {key} {folder.root} {_prefix(plan.interpreter)}"
    line = f'{{"input": "%d", "expected": "{answer}"}}\n'
    folder.write("cases.jsonl", "".join(line % number for number in range(plan.cases)))
    return folder


def _key(plan: Plan) -> str:
    """Make a key that shares no characters with the rest of an answer."""
    return f"key-{plan.who[::-1]}"


def _prefix(interpreter: str) -> str:
    return str(Path(interpreter).parent.parent)


async def _run(folder: Folder, plan: Plan) -> None:
    environ = {"WHO": plan.who, "KEY": _key(plan), "VIRTUAL_ENV": _prefix(plan.interpreter)}
    asked = (*RUN, "--workers", str(plan.workers), "--concurrency", "2", "--name", plan.who)
    async with folder.started(*asked, interpreter=plan.interpreter, **environ) as running:
        if plan.interrupts:
            await until(lambda: folder.calls, TIMEOUT)
            running.interrupt()
        family = running.family()
        ran = await running.end()
    if ran.code == 130:
        again = ("batch", "resume", "--json", ran.document["batch_id"], "--workers", "1")
        ran = await folder.run(*again, interpreter=plan.interpreter, **environ)
    _check(plan, ran)
    await until(lambda: gone(family), 60)


def _check(plan: Plan, ran: Ran) -> None:
    if (ran.code, ran.document.get("passed"), ran.document.get("total")) != (0, plan.cases, plan.cases):
        raise MixedUp(f"{plan}: exit code {ran.code}\n{ran.stdout}\n{ran.stderr}")


def _check_nothing_left(servers: Servers, runs: Sequence[Plan]) -> None:
    """Check that neither batch registry nor executor registry names a run that is over."""
    with Redis.from_url(servers.redis_url) as redis:
        up = [*redis.hkeys(BATCHES), *redis.zrange(EXECUTORS, 0, -1)]
    left = [name for name in map(bytes.decode, up) if any(name.startswith(plan.who) for plan in runs)]
    if left:
        raise MixedUp(f"left behind: {left}")


def second_interpreter(root: Path) -> str:
    """Make another interpreter with the same packages: a virtual environment that sees this one's."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / "venv")], check=True)
    [packages] = (root / "venv" / "lib").glob("python*/site-packages")
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "ours.pth").write_text(
        "".join(f"import site; site.addsitedir({path!r})\n" for path in ours)
    )
    return str(root / "venv" / "bin" / "python")


async def play_rounds(root: Path, servers: Servers, *, rounds: int, seed: int) -> int:
    """Play so many rounds; returns how many runs there were."""
    random, count = Random(seed), 0
    interpreters = [sys.executable, second_interpreter(root)]
    for number in range(1, rounds + 1):
        drawn = plans(random, interpreters)
        await play(root / str(number), servers, drawn)
        count += len(drawn)
        print(
            f"round {number}: {len(drawn)} runs, {sum(p.interrupts for p in drawn)} interrupted", flush=True
        )
    return count


def main() -> None:
    """Play rounds, and print how many runs kept to themselves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    wanted = parser.parse_args()
    print(f"seed {wanted.seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="runs-", ignore_cleanup_errors=True) as place,
        embedded_servers(Path(place, "d")) as servers,
    ):
        asyncio.run(prepare(servers.postgres_url, shards=DEFAULT_SHARDS))
        runs = asyncio.run(play_rounds(Path(place), servers, rounds=wanted.rounds, seed=wanted.seed))
    print(f"{wanted.rounds} rounds, {runs} runs: no answer from another run, nothing left behind")


if __name__ == "__main__":
    main()
