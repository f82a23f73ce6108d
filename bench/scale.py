"""Measures the memory of large batches: every process, and Redis, while they run.

    python -m bench.scale --json 10000 100000 1000000

Limit: flat memory, a ratio of the largest to the second largest size near 1. Each size is one batch on
embedded servers, with real processes and a target that answers at once. Memory is sampled every second; the
figure of a process is its peak once the first tenth of the batch is done, so that growth with the batch is
visible.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection
from redis.asyncio import Redis
from rich.console import Console

from bench.cpu import family, server_pids, service_of
from bench.runner import running
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers
from scoreline.local.fleet import Fleet
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.submission import submit

MB = 1024 * 1024


@dataclass(slots=True)
class Peaks:
    """The most that was seen, by part of the system."""

    rss: Counter[str] = field(default_factory=Counter)
    redis: int = 0

    def see(self, root: Path, redis_bytes: int) -> None:
        """Sample once; of several processes of a component the largest counts."""
        for used in family(os.getpid(), *server_pids(root)):
            service = service_of(used)
            self.rss[service] = max(self.rss[service], used.rss)
        self.redis = max(self.redis, redis_bytes)


async def one_size(servers: Servers, root: Path, evaluations: int) -> dict[str, Any]:
    """Run a batch of this size, and watch."""
    peaks = Peaks()
    plan = make_plan(None, {"mode": "simulated", "limit": evaluations}, folder=Path.cwd())
    redis = Redis.from_url(servers.redis_url)
    async with running(servers, Fleet("bench", 2, concurrency=256)):
        started = time.perf_counter()
        batch_id, _ = await submit(plan, servers, Settings(), Console(stderr=True))
        accepted = time.perf_counter() - started
        async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as conn:
            while (done := await _done(conn, batch_id)) < evaluations:
                if done >= evaluations / 10:
                    peaks.see(root, (await redis.info("memory"))["used_memory"])
                await asyncio.sleep(1.0)
        took = time.perf_counter() - started
    await redis.aclose()
    return {
        "evaluations": evaluations,
        "accepted_s": round(accepted, 1),
        "seconds": round(took, 1),
        "redis_mb": round(peaks.redis / MB, 1),
        "rss_mb": {service: round(size / MB, 1) for service, size in sorted(peaks.rss.items())},
    }


async def _done(conn: AsyncConnection[Any], batch_id: str) -> int:
    asked = "SELECT total - pending FROM batch_status WHERE batch_id = %s"
    row = await (await conn.execute(asked, [batch_id])).fetchone()
    return int(row[0]) if row else 0


async def measure(sizes: list[int]) -> dict[str, Any]:
    """Measure one size after the other, each on servers of its own."""
    results = []
    for size in sizes:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place,
            embedded_servers(Path(place)) as servers,
        ):
            await prepare(servers.postgres_url, shards=Settings().shards)
            results.append(await one_size(servers, Path(place), size))
        print(results[-1], file=sys.stderr)
    found: dict[str, Any] = {"sizes": results}
    if len(results) > 1:
        smaller, larger = results[-2], results[-1]
        found["redis_ratio"] = round(larger["redis_mb"] / smaller["redis_mb"], 2)
        found["rss_ratio"] = {
            service: round(larger["rss_mb"][service] / smaller["rss_mb"][service], 2)
            for service in larger["rss_mb"]
        }
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
