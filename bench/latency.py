"""Measures the time from recording an event to its commit, and the cost of recording for the executor.

    python -m bench.latency --json

Limit: none; the figures are absolute. A steady load (1,500 events a second) goes through one executor's
event queue to a real storage worker; the commit time is Postgres' own commit timestamp. Then a thousand
fast evaluations at once, for the depth of their queues; then the memory of a full buffer.
"""

import argparse
import asyncio
import json
import os
import signal
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from psycopg import AsyncConnection, OperationalError

from bench.drain import BATCH, SHARDS
from bench.worker import storage_workers, until_completed
from eventlog import payloads as p
from eventlog.event_queue import EventQueue, OwnedAttempt, QueueSettings
from eventlog.redis_streams import RedisEventLog
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers
from scoreline.servers.addresses import Servers

COMMIT_LATENCY = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin) - occurred_at) * 1000
FROM events WHERE evaluation_id LIKE 'steady-%'
"""


class Stopwatch:
    """Times of many short calls, in seconds."""

    def __init__(self) -> None:
        self.times: list[float] = []

    @contextmanager
    def lap(self) -> Iterator[None]:
        """Measure the duration of a block."""
        started = time.perf_counter()
        yield
        self.times.append(time.perf_counter() - started)


async def live(queue: EventQueue, name: str, watch: Stopwatch, depths: list[int], pause: float) -> None:
    """Live through a fast evaluation of four events."""
    attempt = queue.own(name, "bench")

    def record(fact: p.Provisioning | p.Running | p.Completed) -> None:
        with watch.lap():
            attempt.record(fact)
        depths.append(attempt.depth)

    with watch.lap():
        attempt.open(p.Queued(case=p.Case(id=name, input="What is 2 + 2?")))
    await asyncio.sleep(pause)
    record(p.Provisioning(executor="bench", nonce=name))
    await asyncio.sleep(pause)
    record(p.Running(target="simulated"))
    await asyncio.sleep(pause)
    usage = p.TokenUsage(input_tokens=9, output_tokens=1)
    record(p.Completed(verdict="passed", score=1.0, output="4", usage=usage))


async def steady(queue: EventQueue, rate: int, seconds: int, watch: Stopwatch) -> int:
    """Begin evaluations at an even pace; returns how many."""
    loop = asyncio.get_running_loop()
    started, tasks = loop.time(), []
    total = rate * seconds // 4
    for number in range(total):
        await asyncio.sleep(max(0.0, started + number * 4 / rate - loop.time()))
        tasks.append(asyncio.create_task(live(queue, f"steady-{number:06}", watch, [], 0.005)))
    await asyncio.gather(*tasks)
    return total


async def _track_commits(servers: Servers) -> None:
    """Have Postgres note commit times, which takes a restart: its guardian starts it again."""
    async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as conn:
        await conn.execute("ALTER SYSTEM SET track_commit_timestamp = on")
        row = await (await conn.execute("SHOW data_directory")).fetchone()
    pid_file = Path(str(row[0] if row else "")) / "postmaster.pid"
    os.kill(int(pid_file.read_text(encoding="utf-8").split()[0]), signal.SIGINT)
    while not await _tracks_commits(servers):  # noqa: ASYNC110 - another process is waited for
        await asyncio.sleep(0.05)


async def _tracks_commits(servers: Servers) -> bool:
    try:
        async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as conn:
            return await (await conn.execute("SHOW track_commit_timestamp")).fetchone() == ("on",)
    except OperationalError:
        return False


def full_tail_mb() -> float:
    """Fill a queue's tail to the brim and weigh it."""
    tracemalloc.start()
    queue = EventQueue(
        RedisEventLog.from_url("redis://unreachable"), source="bench", settings=QueueSettings()
    )
    owned: list[OwnedAttempt] = []
    while queue.outbox.has_capacity:
        owned.append(queue.own(f"tail-{len(owned):06}", "bench"))
        owned[-1].open(p.Queued(case=p.Case(id="1", input="What is 2 + 2?")))
        owned[-1].record(p.Provisioning(executor="bench", nonce="1"))
        owned[-1].record(p.Running(target="simulated"))
        owned[-1].record(p.Responded(output="4" * 200))
        owned[-1].record(p.Completed(verdict="passed", score=1.0))
    del owned
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size / 1e6


async def measure(servers: Servers, rate: int, seconds: int) -> dict[str, object]:
    """Measure on servers of the bench's own."""
    await prepare(servers.postgres_url, shards=SHARDS)
    await _track_commits(servers)
    log = RedisEventLog.from_url(servers.redis_url, shards=SHARDS)
    delays: list[float] = []
    depths: list[int] = []
    watch = Stopwatch()
    async with (
        storage_workers(servers, 1, batch_size=BATCH),
        await AsyncConnection.connect(servers.postgres_url, autocommit=True) as conn,
        EventQueue(log, source="bench", observe=delays.append) as queue,
    ):
        evaluations = await steady(queue, rate, seconds, watch)
        steady_delays = list(delays)
        fast = [live(queue, f"fast-{n:06}", Stopwatch(), depths, 0.01) for n in range(1_000)]
        await asyncio.gather(*fast)
        await until_completed(conn, evaluations + 1_000)
        rows = await (await conn.execute(COMMIT_LATENCY)).fetchall()
    await log.aclose()
    commits = [float(row[0]) for row in rows]
    if len(commits) != evaluations * 4:
        raise RuntimeError(f"{len(commits)} events stored, {evaluations * 4} recorded")
    return {
        "events_per_s": rate,
        "events": len(commits),
        "committed_p50_ms": round(percentile(commits, 0.50), 2),
        "committed_p99_ms": round(percentile(commits, 0.99), 2),
        "acknowledged_p50_ms": round(percentile(steady_delays, 0.50) * 1000, 2),
        "acknowledged_p99_ms": round(percentile(steady_delays, 0.99) * 1000, 2),
        "record_p50_us": round(percentile(watch.times, 0.50) * 1e6, 1),
        "record_p99_us": round(percentile(watch.times, 0.99) * 1e6, 1),
        "depth_p99_of_1000_at_once": percentile(depths, 0.99),
        "full_tail_mb": round(full_tail_mb(), 2),
    }


def percentile(values: list[float] | list[int], share: float) -> float:
    """Return the value that a share of all others do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def main() -> None:
    """Measure on embedded servers of the bench's own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rate", type=int, default=1_500, help="events a second")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print only one JSON object on stdout")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        embedded_servers(Path(root)) as servers,
    ):
        result = asyncio.run(measure(servers, args.rate, args.seconds))
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
