"""Measures how close lanes keep a fleet to a provider's rate limit, and what they cost.

    python -m bench.lanes --json
    python -m bench.lanes --only given_4,outage --seconds 30

Limit: the simulated provider's own requests per minute; goodput is the share of it that was answered, and
refusals the share of calls that received 429, as counted by the simulator from its first call. Every run
has its own simulator, servers and executors, all of them processes.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from bench import lanes_faults, lanes_goodput, lanes_naive, lanes_sharing
from bench.lanes_environment import report_progress

Run = Callable[[float], Awaitable[dict[str, Any]]]

RUNS: dict[str, Run] = {
    **{name: partial(lanes_goodput.run, plan) for name, plan in lanes_goodput.RUNS.items()},
    **{name: partial(lanes_naive.run, crowd) for name, crowd in lanes_naive.CROWDS.items()},
    "isolation": lanes_faults.isolation,
    "sharing": lanes_sharing.sharing,
    "idle": lanes_sharing.idle,
    "outage": lanes_faults.outage,
    "loss": lanes_faults.loss,
    "overhead": lanes_sharing.overhead,
}


async def measure(chosen: list[str], seconds: float) -> dict[str, Any]:
    """Measure one run after the other."""
    results: dict[str, Any] = {}
    for name in chosen:
        report_progress(f"{name} ...")
        results[name] = await RUNS[name](seconds) | {"machine_load": round(os.getloadavg()[0], 1)}
        report_progress(f"{name}: {json.dumps(results[name])}")
    return results


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in RUNS]:
        raise argparse.ArgumentTypeError(f"no run: {', '.join(unknown)}; there are {', '.join(RUNS)}")
    return names


def main() -> None:
    """Measure on embedded servers of the bench's own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=_names, default=list(RUNS), metavar="NAME,…", help=", ".join(RUNS))
    parser.add_argument("--seconds", type=float, default=60.0, help="how long a run is watched")
    parser.add_argument("--json", action="store_true", help="print only one JSON object on stdout")
    args = parser.parse_args()
    result = asyncio.run(measure(args.only, args.seconds))
    print(json.dumps(result) if args.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
