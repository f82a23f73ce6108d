"""Measures whether budgets hold: randomized batches against the provider simulator, compared with its bill.

    python -m bench.budget --json [--runs 50] [--seed 1] [--first 0]

Limit: an overdraft (the bill beyond the budget, as a share of it) of 5 %; the exit code is 1 if any run
exceeds it. Each run uses real processes on embedded servers: four executors of 16 slots. It draws latency,
length of prompts and answers, `max_tokens`, evaluators, timeouts, rejected calls and broken replies,
executors that are killed, a lost budget account, and a limit in dollars or tokens.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from bench.budget_trials import FLEET, BudgetBench, TrialResult, draw, run
from bench.lanes_environment import KEY, all_present, provider, report_progress
from projections.database.readiness import prepare
from scoreline.local import fleet as fleets
from scoreline.local.embedded import embedded_servers
from scoreline.local.processes import process_manager
from scoreline.local.storage_workers import worker_environ
from scoreline.settings import Settings

MOST = 0.05
EXECUTORS, SLOTS = 4, 16


async def measure(runs: range, seed: int) -> list[TrialResult]:
    """Run the trials one after the other."""
    os.environ[KEY] = "sim"
    outcomes: list[TrialResult] = []
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        servers = stack.enter_context(embedded_servers(root))
        await prepare(servers.postgres_url, shards=Settings().shards)
        environ = worker_environ(Settings(), servers) | {"EVAL_LOG_LEVEL": "ERROR"}
        manager = await stack.enter_async_context(process_manager(environ, log_to=sys.stderr.fileno()))
        stack.callback(manager.kill)
        fleets.start(fleets.Fleet(FLEET, EXECUTORS, concurrency=SLOTS), manager)
        await all_present(servers, EXECUTORS)
        sim = await stack.enter_async_context(provider())
        for number in runs:
            dice = Random(f"{seed}:{number}")
            outcome = await run(BudgetBench(servers, manager, root), sim, draw(dice), dice)
            outcomes.append(outcome)
            report_progress(
                f"run {number}: {outcome.status}, {outcome.used:.1%} of the budget billed, "
                f"{1 + outcome.recorded_overdraft:.1%} counted, {outcome.seconds:.0f} s"
            )
    return outcomes


def summary(outcomes: list[TrialResult], *, seed: int) -> dict[str, Any]:
    """Print the results of the runs."""
    paused = [each.used for each in outcomes if each.status == "paused"]
    return {
        "runs": len(outcomes),
        "seed": seed,
        "max_overdraft": max(each.overdraft for each in outcomes),
        "max_recorded_overdraft": max(each.recorded_overdraft for each in outcomes),
        "over_budget": sum(each.overdraft > 0 for each in outcomes),
        "paused": len(paused),
        "used_median": round(median(paused), 4) if paused else None,
        "used_min": min(paused, default=None),
        "trials": [each.listed() for each in outcomes],
    }


def main() -> int:
    """Measure and print; 1 if an overdraft exceeds the bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    wanted = parser.parse_args()
    runs = range(wanted.first, wanted.first + wanted.runs)
    outcomes = asyncio.run(measure(runs, wanted.seed))
    found = summary(outcomes, seed=wanted.seed)
    print(json.dumps(found if wanted.json else {**found, "trials": len(outcomes)}))
    return 1 if found["max_overdraft"] > MOST else 0


if __name__ == "__main__":
    sys.exit(main())
