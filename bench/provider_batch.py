"""Measures the memory of batches answered by provider batches, and whether any request is sent twice.

    python -m bench.provider_batch --json 10000 100000

`after_500` is a submission that the provider answered with 500: the seconds until it is repeated.

Limit: flat memory, a ratio of the largest to the second largest size near 1, and 0 duplicate requests. Each
size is one batch on embedded servers, with real processes and a simulated provider. Memory is the peak of
each process over the whole run, as the kernel reports it.
"""

import argparse
import asyncio
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection

from bench.cpu import family, server_pids, service_of
from bench.lanes_environment import LaneBench, SimulatedProvider, lane_bench, provider, report_progress

KB_IN_MB = 1024
LOOK_EVERY, SHORT_LOOK = 1.0, 0.05
REPEATED = 100
LATENCY = {"latency": 0, "latency_p95": 0}
ON_RECORD = """
SELECT count(*) FILTER (WHERE type = 'responded' AND attempt = 1),
       count(*) FILTER (WHERE type = 'completed'), count(DISTINCT evaluation_id)
FROM events
"""
"""The provider's answer is put on record in the first attempt; the second scores it."""


async def one_size(requests: int) -> dict[str, Any]:
    """Run a batch of this size to its end."""
    async with provider(**LATENCY, batch_seconds=1) as sim, lane_bench(2, slots=256) as here:
        started = time.perf_counter()
        batch_id = await here.run(sim, cases=requests, batch_api=True)
        peaks = await _watched(here, batch_id)
        took = time.perf_counter() - started
        return {
            "requests": requests,
            "seconds": round(took, 1),
            "rss_mb": {service: round(size / KB_IN_MB, 1) for service, size in sorted(peaks.items())},
            **await _counts(here, sim),
        }


async def _watched(here: LaneBench, batch_id: str) -> Counter[str]:
    """Wait until a batch is over; returns the most memory that each part of the system has had."""
    peaks: Counter[str] = Counter()
    over = "SELECT finished_at IS NOT NULL FROM batches WHERE batch_id = %s"
    async with await AsyncConnection.connect(here.servers.postgres_url, autocommit=True) as conn:
        while True:
            for used in family(os.getpid(), *server_pids(here.root)):
                service = "simulator" if "provider-sim" in used.command else service_of(used)
                peaks[service] = max(peaks[service], _peak(used.pid))
            row = await (await conn.execute(over, [batch_id])).fetchone()
            if row and row[0]:
                return peaks
            await asyncio.sleep(LOOK_EVERY)


def _peak(pid: int) -> int:
    """Read the peak memory of a process in KB; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


async def _counts(here: LaneBench, sim: SimulatedProvider) -> dict[str, int]:
    stats = await sim.stats()
    async with await AsyncConnection.connect(here.servers.postgres_url) as conn:
        row = await (await conn.execute(ON_RECORD.encode())).fetchone() or (0, 0, 0)
    return {
        "provider_batches": stats["batches_created"],
        "asked": stats["batch_requests"],
        "asked_again": stats["batch_requests_again"],
        "results_recorded": row[0],
        "completed": row[1],
        "evaluations": row[2],
    }


async def after_500() -> dict[str, Any]:
    """Measure how long after a reply with 500 a provider batch is submitted again, and how often."""
    flags = {**LATENCY, "batch_seconds": 1, "batch_server_error": 1}
    async with provider(**flags) as sim, lane_bench(1) as here:
        batch_id = await here.run(sim, cases=REPEATED, batch_api=True)
        while not (await sim.stats())["faults"].get("batch_server_error"):  # noqa: ASYNC110 - another process
            await asyncio.sleep(SHORT_LOOK)
        replied = time.monotonic()
        await sim.change(batch_server_error=0)
        while not (await sim.stats())["batches_created"]:  # noqa: ASYNC110 - another process
            await asyncio.sleep(SHORT_LOOK)
        repeated = time.monotonic()
        await _watched(here, batch_id)
        return {"seconds_to_repeat": round(repeated - replied, 1), **await _counts(here, sim)}


async def measure(sizes: list[int]) -> dict[str, Any]:
    """Measure one size after the other."""
    results = []
    for size in sizes:
        results.append(await one_size(size))
        report_progress(json.dumps(results[-1]))
    found: dict[str, Any] = {"sizes": results, "after_500": await after_500()}
    if len(results) > 1:
        smaller, larger = results[-2]["rss_mb"], results[-1]["rss_mb"]
        found["rss_ratio"] = {service: round(larger[service] / smaller[service], 2) for service in larger}
    return found


def main() -> None:
    """Measure on embedded servers of the bench's own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", type=int, nargs="*", default=[10_000, 100_000], metavar="N")
    parser.add_argument("--json", action="store_true", help="print only one JSON object on stdout")
    args = parser.parse_args()
    result = asyncio.run(measure(args.sizes or [10_000, 100_000]))
    print(json.dumps(result) if args.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
