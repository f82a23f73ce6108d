"""Any mix of batches and limits on one lane: is the provider ever called faster than the strictest allows?

    python -m tests.limits --runs 50 --json
    python -m tests.limits --runs 1 --seed 17 --commands 0

Most runs are in virtual time, with real executors and lanes; `--commands` of them go through the command
line, with real processes and servers, on loopback. The exit code is 1 if any limit was exceeded.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.limits.commands import draw_commands, run_commands
from tests.limits.plans import draw_plan
from tests.limits.virtual import run_in_virtual_time


def run_all(runs: int, commands: int, seed: int) -> dict[str, Any]:
    """Run them one after the other."""
    exceeded: dict[str, list[str]] = {}
    total = 0
    for number in range(seed, seed + runs):
        is_virtual = number - seed < runs - commands
        found, calls = run_in_virtual_time(draw_plan(number)) if is_virtual else _by_command(number)
        total += calls
        kind = "virtual" if is_virtual else "commands"
        print(f"{kind} {number}: {calls} calls, {len(found)} limits exceeded", file=sys.stderr, flush=True)
        if found:
            exceeded[f"{kind} {number}"] = found
    return {"runs": runs, "by_command": commands, "seed": seed, "calls": total, "exceeded": exceeded}


def _by_command(seed: int) -> tuple[list[str], int]:
    with tempfile.TemporaryDirectory(prefix="limits-", ignore_cleanup_errors=True) as folder:
        return asyncio.run(run_commands(draw_commands(seed), Path(folder)))


def main() -> int:
    """Run, and print one line for each, or one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50, help="how many runs")
    parser.add_argument("--commands", type=int, default=4, help="how many of them by the command line")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    args = parser.parse_args()
    result = run_all(args.runs, min(args.commands, args.runs), args.seed)
    if args.json:
        print(json.dumps(result))
    else:
        print(f"{result['runs']} runs, {result['calls']} calls, exceeded: {result['exceeded'] or 'none'}")
    return 1 if result["exceeded"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
