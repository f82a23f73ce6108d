"""Fuzz every target, each in a process of its own with a limit of memory, and print a table."""

import argparse
import json
import resource
import secrets
import subprocess
import sys

from rich.console import Console
from rich.table import Table

import tests.fuzz
from tests.fuzz.campaign import FuzzOutcome, fuzz
from tests.fuzz.targets import TARGETS

MAX_BYTES = 3 * 1024**3
"""Address space of a process: a parser that takes more fails with `MemoryError`."""
MAX_MEGABYTES = 300
"""Resident memory of a process that a target may take at most."""
GRACE = 120
"""Seconds after which a process that should have ended hangs."""


def main() -> int:
    """Return 1 if a target failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=tests.fuzz.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=2.0, help="in all, shared by the targets")
    parser.add_argument("--only", default="", help="targets whose name has this word")
    parser.add_argument("--seed", type=int, help="first seed; a random one unless given")
    parser.add_argument("--json", action="store_true", help="one JSON object per target")
    parser.add_argument("--alone", metavar="SECONDS", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    chosen = [target for target in TARGETS if asked.only in target.name]
    if not chosen:
        parser.error(
            f"no target has {asked.only!r} in its name: {', '.join(each.name for each in TARGETS)}"
        )
    first_seed = asked.seed if asked.seed is not None else secrets.randbelow(2**31)
    if asked.alone is not None:
        [target] = [each for each in TARGETS if each.name == asked.only]
        print(json.dumps(fuzz(target, first_seed=first_seed, seconds=asked.alone).as_dict()))
        return 0
    outcomes = []
    for target in chosen:
        outcomes.append(in_own_process(target.name, first_seed, asked.minutes * 60 / len(chosen)))
        if asked.json:
            print(json.dumps(outcomes[-1].as_dict()), flush=True)
    if not asked.json:
        show(outcomes, first_seed)
    return int(any(outcome.failure for outcome in outcomes))


def in_own_process(name: str, first_seed: int, seconds: float) -> FuzzOutcome:
    """Fuzz one target where neither its memory nor its end concerns anything else."""
    command = [sys.executable, "-m", "tests.fuzz", "--only", name, "--seed", str(first_seed)]
    try:
        ran = subprocess.run(
            [*command, "--alone", str(seconds)],
            capture_output=True,
            text=True,
            timeout=seconds + GRACE,
            preexec_fn=_limit_memory,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return FuzzOutcome(name, failure=f"hangs: no end within {GRACE} s of its time (seed {first_seed})")
    if ran.returncode:
        return FuzzOutcome(name, failure=f"exit code {ran.returncode}: {ran.stderr[-500:]}")
    outcome = FuzzOutcome(**json.loads(ran.stdout.splitlines()[-1]))
    if not outcome.failure and outcome.peak_mb > MAX_MEGABYTES:
        outcome.failure = f"{outcome.peak_mb} MB of memory, {MAX_MEGABYTES} are allowed (seed {first_seed})"
    return outcome


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))


def show(outcomes: list[FuzzOutcome], first_seed: int) -> None:
    """Print the table, and each failure below it."""
    table = Table("target")
    for name in ("examples", "failures", "slowest ms", "peak MB"):
        table.add_column(name, justify="right")
    for each in outcomes:
        figures = f"{each.examples:,}", str(int(bool(each.failure))), f"{each.slowest * 1000:,.0f}"
        table.add_row(each.target, *figures, str(each.peak_mb))
    console = Console()
    console.print(table)
    console.print(f"first seed {first_seed}", highlight=False)
    for each in outcomes:
        if each.failure:
            console.print(f"{each.target}: {each.failure}", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
