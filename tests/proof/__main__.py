"""The long form of the proofs: the model searched deep, ten thousand simulated runs, each fault many times.

    python -m tests.proof                          everything; 20 minutes or so
    python -m tests.proof --seeds 500 --runs 2     a taste of it
    python -m tests.proof --part simulation        one part alone: model, simulation or faults

Ends with one table, in which everything but the runs must be nought.
"""

import argparse
import logging
import sys
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

from tests import chaos, protocol_model, simulation
from tests.proof.outcome import Outcome

COLUMNS = ("runs", "lost", "doubled", "stuck", "violations")


def main() -> int:
    """Run the parts one after the other; returns 1 unless every row is clean."""
    args = _arguments()
    logging.getLogger().addHandler(logging.NullHandler())  # faults are meant to be grumbled about
    parts: dict[str, Callable[[], list[Outcome]]] = {
        "model": lambda: protocol_model.prove(args.limit),
        "simulation": lambda: simulation.prove(args.seeds, args.jobs),
        "faults": lambda: chaos.prove(args.runs),
    }
    outcomes: list[Outcome] = []
    for name, prove in parts.items():
        if args.part in {None, name}:
            started = time.monotonic()
            outcomes += prove()
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    Console(width=110).print(table(outcomes))
    for outcome in outcomes:
        for failure in outcome.failures:
            print(f"{outcome.fault}: {failure}")
    return int(not all(outcome.is_clean for outcome in outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10_000, help="runs of the simulator")
    parser.add_argument("--runs", type=int, default=20, help="of each fault, on real servers")
    parser.add_argument("--limit", type=int, default=400_000, help="states of the model in each scenario")
    parser.add_argument("--jobs", type=int, default=2, help="processes of the simulator")
    parser.add_argument("--part", choices=["model", "simulation", "faults"], help="only this")
    return parser.parse_args()


def table(outcomes: Sequence[Outcome]) -> Table:
    """Lay the rows out, with a last one for all of them."""
    drawn = Table("fault")
    for name in COLUMNS:
        drawn.add_column(name, justify="right")
    for outcome in outcomes:
        drawn.add_row(outcome.fault, *(f"{getattr(outcome, name):,}" for name in COLUMNS))
    drawn.add_section()
    totals = (sum(getattr(outcome, name) for outcome in outcomes) for name in COLUMNS)
    drawn.add_row("all", *(f"{total:,}" for total in totals))
    return drawn


if __name__ == "__main__":
    sys.exit(main())
