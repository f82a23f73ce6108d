"""Measures large batches: memory of every process and of Redis while they run, pace, and survival of kills.

    python -m bench.scale --json 10000 100000 1000000
    python -m bench.scale --json 1000000 --kills 7 --every 10

Limit: flat memory, a ratio of the largest to the second largest size near 1; the last tenth of a batch
ends at the rate of the first. Each size is one batch on embedded servers, with real processes and a
target that answers at once. Memory is sampled every second; the figure of a process is its peak once the
first tenth of the batch is done, so that growth with the batch is visible. With --kills, processes and
servers are killed at random with that seed. At the end `scoreline replay --verify` compares the tables
with the log, and the ends of all evaluations are counted.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import AsyncConnection
from redis.asyncio import Redis
from redis.exceptions import RedisError
from rich.console import Console

from bench.cpu import family, server_pids, service_of
from bench.runner import running
from bench.scale_faults import killing
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers
from scoreline.local.fleet import Fleet
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.submission import submit

MB = 1024 * 1024
STORED = """
SELECT (SELECT count(*) FROM scorecards WHERE batch_id = %(batch_id)s),
       (SELECT count(*) FROM (
           SELECT evaluation_id FROM events JOIN evaluations v USING (evaluation_id)
           WHERE v.batch_id = %(batch_id)s AND type = 'completed' AND verdict = 'applied'
           GROUP BY evaluation_id HAVING count(*) > 1) doubled),
       (SELECT count(*) FROM evaluations WHERE batch_id = %(batch_id)s AND ended_at IS NULL)
"""


@dataclass(slots=True)
class Peaks:
    """The most that was seen, by part of the system."""

    after: float
    """Evaluations that must have ended before a sample counts."""
    rss: Counter[str] = field(default_factory=Counter)
    redis: int = 0

    def see(self, root: Path, redis_bytes: int) -> None:
        """Sample once; of several processes of a component the largest counts."""
        for used in family(os.getpid(), *server_pids(root)):
            service = service_of(used)
            self.rss[service] = max(self.rss[service], used.rss)
        self.redis = max(self.redis, redis_bytes)


@dataclass(slots=True)
class Tenths:
    """When each tenth of a batch had ended, in seconds since the first end."""

    evaluations: int
    tenths: list[float] = field(default_factory=list)
    _first: float | None = None

    def see(self, done: int, now: float) -> None:
        """Add a sample."""
        if done:
            self._first = self._first or now
            while len(self.tenths) < done * 10 // self.evaluations:
                self.tenths.append(now - self._first)

    @property
    def last_to_first(self) -> float | None:
        """The rate of the last tenth relative to that of the first."""
        if len(self.tenths) < 10 or self.tenths[9] == self.tenths[8]:
            return None
        return round(self.tenths[0] / (self.tenths[9] - self.tenths[8]), 2)


async def one_size(
    servers: Servers, root: Path, evaluations: int, args: argparse.Namespace
) -> dict[str, Any]:
    """Run a batch of this size, watch it, and check what is stored."""
    peaks, pace = Peaks(evaluations / 10), Tenths(evaluations)
    plan = make_plan(None, {"mode": "simulated", "limit": evaluations}, folder=Path.cwd())
    async with running(servers, Fleet("bench", 2, concurrency=256)):
        started = time.perf_counter()
        batch_id, _ = await submit(plan, servers, Settings(), Console(stderr=True))
        accepted = time.perf_counter() - started
        async with killing(root, every=args.every, seed=args.kills) as kills:
            done = 0
            while done < evaluations:
                done = await _sample(servers, root, batch_id, peaks, done)
                pace.see(done, time.perf_counter())
                await asyncio.sleep(1.0)
        took = time.perf_counter() - started
    return {
        "evaluations": evaluations,
        "accepted_s": round(accepted, 1),
        "seconds": round(took, 1),
        "last_tenth_to_first": pace.last_to_first,
        "redis_mb": round(peaks.redis / MB, 1),
        "rss_mb": {service: round(size / MB, 1) for service, size in sorted(peaks.rss.items())},
        "kills": dict(kills),
        **await _stored(servers, batch_id, evaluations),
        **_verified(servers, batch_id),
    }


async def _sample(servers: Servers, root: Path, batch_id: str, peaks: Peaks, done: int) -> int:
    """Sample once; a server that does not answer leaves everything as it was."""
    try:
        async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as conn:
            done = await _done(conn, batch_id)
        if done >= peaks.after:
            async with Redis.from_url(servers.redis_url) as redis:
                peaks.see(root, (await redis.info("memory"))["used_memory"])
    except (psycopg.Error, RedisError, OSError) as error:
        print(f"no sample: {error}", file=sys.stderr)
    return done


async def _done(conn: AsyncConnection[Any], batch_id: str) -> int:
    asked = "SELECT total - pending FROM batch_status WHERE batch_id = %s"
    row = await (await conn.execute(asked, [batch_id])).fetchone()
    return int(row[0]) if row else 0


async def _stored(servers: Servers, batch_id: str, evaluations: int) -> dict[str, int]:
    """Count what is wrong: evaluations without a scorecard, with two completions, or without an end."""
    async with await AsyncConnection.connect(servers.postgres_url) as conn:
        row = await (await conn.execute(STORED, {"batch_id": batch_id})).fetchone()
    scorecards, doubled, stuck = row or (0, 0, 0)
    return {"lost": evaluations - scorecards, "doubled": doubled, "stuck": stuck}


def _verified(servers: Servers, batch_id: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "scoreline", "replay", "--batch", batch_id, "--verify"]
    environ = {**os.environ, "EVAL_REDIS_URL": servers.redis_url, "EVAL_POSTGRES_URL": servers.postgres_url}
    started = time.perf_counter()
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    lines = (ended.stdout or ended.stderr).strip().splitlines()
    took = round(time.perf_counter() - started, 1)
    return {"verify": lines[-1:], "verify_exit_code": ended.returncode, "verify_s": took}


async def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure one size after the other, each on servers of its own."""
    results = []
    for size in args.sizes or [10_000, 100_000]:
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place,
            embedded_servers(Path(place)) as servers,
        ):
            await prepare(servers.postgres_url, shards=Settings().shards)
            results.append(await one_size(servers, Path(place), size, args))
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
    parser.add_argument("--kills", type=int, metavar="SEED", help="kill processes at random, by this seed")
    parser.add_argument(
        "--every", type=float, default=10.0, metavar="S", help="mean seconds between two kills"
    )
    args = parser.parse_args()
    result = asyncio.run(measure(args))
    print(json.dumps(result) if args.json else json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
