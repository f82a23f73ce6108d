"""The fault matrix, long form: `python -m tests.chaos [--fault NAME]... [--runs N] [--seed FIRST]`."""

import argparse
import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from tests.chaos.proof import Matrix


def main() -> int:
    """Run the requested rows and print the table; returns 1 if anything was amiss."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--fault", action="append", default=[], metavar="NAME", help="only this row")
    parser.add_argument("--runs", type=int, default=20, help="runs of each row (20)")
    parser.add_argument("--seed", type=int, default=1, help="the first run's seed (1)")
    parser.add_argument(
        "--keep", metavar="DIRECTORY", help="keep servers' files and logs there, in a new one"
    )
    asked = parser.parse_args()
    if asked.keep and Path(asked.keep).exists():
        parser.error(f"{asked.keep} exists; each time needs servers of its own")
    logging.disable(logging.WARNING)  # writers log every outage: there will be many
    matrix = Matrix(asked.runs, first_seed=asked.seed, names=asked.fault)
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as scratch:
        asyncio.run(matrix.run(Path(asked.keep or scratch)))
    matrix.print_table()
    return 0 if matrix.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
