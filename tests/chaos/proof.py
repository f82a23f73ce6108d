"""The matrix as a proof: many runs of each row, a table, and the seldom paths that must have been taken."""

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.faults import Fault
from tests.chaos.findings import Findings
from tests.chaos.matrix import chosen, run_once
from tests.chaos.world import World, world
from tests.proof.outcome import Outcome

SELDOM = {
    "DUPLICATE": "an event was sent again after its answer was lost",
    "CONFLICT": "a key was written with another body",
    "FENCED": "a writer whose attempt was taken over was turned away",
    "EPOCH": "a writer learnt that Redis had forgotten",
    "stale": "an attempt spoke after the next had begun",
    "late": "an event came after its gap was bridged",
    "rejected": "an event stood where it may not",
    "bridged": "a gap was stepped over",
    "taken over": "wake-ups of a dead worker were taken over",
    "redelivered": "a worker found what was pending when it died",
    "read twice": "a reader met an event it had",
    "lost race": "two workers moved one evaluation, and one lost",
    "worker left by itself": "a worker ended because Redis had lost its groups",
    "LogUnavailable": "a worker waited for Redis",
    "DatabaseUnavailable": "a worker waited for Postgres",
    "owner lost": "an attempt was opened because the last one's executor was gone",
    "answer found on record": "an attempt went on with an answer that another had paid for",
    "coordinator killed": "a coordinator was killed",
}
"""Paths that the matrix must have taken, or it proves less than it seems to."""
ENOUGH = 5
"""Runs of each row after which a path not taken is no accident."""


class Matrix:
    """Rows, runs, and what they came to."""

    def __init__(self, runs: int, *, first_seed: int = 1, names: Sequence[str] = ()) -> None:
        self.outcomes: list[Outcome] = []
        self.seconds: dict[str, float] = {}
        self.paths: Counter[str] = Counter()
        self._seeds = range(first_seed, first_seed + runs)
        self._faults = chosen(names)
        self._counts = not names and runs >= ENOUGH

    async def run(self, root: Path) -> None:
        """Run every row so many times on servers under `root`."""
        async with world(root) as here:
            for number, fault in enumerate(self._faults, start=1):
                print(f"[{number}/{len(self._faults)}] {fault.name}: {fault.sentence}", flush=True)
                if reason := fault.impossible():
                    print(f"    not run: {reason}", flush=True)
                else:
                    await self._run_row(here, fault)

    async def _run_row(self, here: World, fault: Fault) -> None:
        outcome, began = Outcome(fault.name), time.monotonic()
        self.outcomes.append(outcome)
        for seed in self._seeds:
            began_run = time.monotonic()
            findings = await run_once(here, fault, seed)
            self.paths.update(findings.paths)
            _add(outcome, seed, findings)
            took = time.monotonic() - began_run
            print(f"    seed {seed}: {took:.1f} s  {findings.brief()}", flush=True)
        self.seconds[fault.name] = time.monotonic() - began

    @property
    def never_taken(self) -> list[str]:
        """Seldom paths that no run has taken; asked only of the whole matrix, run often enough."""
        return [path for path in SELDOM if self._counts and not self.paths[path]]

    @property
    def is_clean(self) -> bool:
        """Whether every row that ran is clean, and no seldom path was missed."""
        return all(outcome.is_clean for outcome in self.outcomes) and not self.never_taken

    def print_table(self) -> None:
        """Print a line a row, then how often the seldom paths were taken."""
        print(f"\n{'fault':34} runs  lost  doubled  stuck  violations   s/run")
        for row in self.outcomes:
            numbers = f"{row.runs:4} {row.lost:5} {row.doubled:8} {row.stuck:6} {row.violations:11}"
            print(f"{row.fault:34} {numbers} {self.seconds[row.fault] / row.runs:7.2f}")
        for failure in (failure for row in self.outcomes for failure in row.failures):
            print(f"FAILED {failure}")
        print("\nseldom paths taken:")
        for path, times in sorted(self.paths.items()):
            print(f"{times:9}  {path}{': ' + SELDOM[path] if path in SELDOM else ''}")
        for path in self.never_taken:
            print(f"    never  {path}: {SELDOM[path]}")


def _add(outcome: Outcome, seed: int, findings: Findings) -> None:
    outcome.runs += 1
    outcome.lost += len(findings.lost)
    outcome.doubled += len(findings.doubled)
    outcome.stuck += len(findings.stuck)
    outcome.violations += len(findings.violations)
    if findings:
        again = f"python -m tests.chaos --fault {outcome.fault} --seed {seed} --runs 1"
        outcome.failures.append(f"{again}: {findings.brief()}")


def prove(runs: int) -> list[Outcome]:
    """Run the whole matrix so many times; one outcome a fault, and one for the paths that must be taken."""
    matrix = Matrix(runs)
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as scratch:
        asyncio.run(matrix.run(Path(scratch)))
    matrix.print_table()
    paths = Outcome("seldom paths are taken", runs=runs, violations=len(matrix.never_taken))
    paths.failures += (f"never taken: {path}, {SELDOM[path]}" for path in matrix.never_taken)
    return [*matrix.outcomes, paths]
