"""Measures how fast a storage worker drains a full log, against the raw limit of its two servers.

    python -m bench.drain --json

Limit: the unavoidable work, 1/(1/read + 1/copy): reading and acknowledging as many entries with a plain
consumer, and COPYing the same rows into a staging table and on into `events`. The drain runs in a process
of its own, through the real FastStream application, and does everything else as well: wake-up messages,
ordering, the state machine, evaluations, scorecards, counters, marks, expiry. Both are measured in turn,
several times, and the medians compared.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from psycopg import AsyncConnection
from redis.asyncio import Redis

from bench.histories import life, preload
from bench.worker import storage_workers, until_completed
from eventlog.codec import fields_of
from eventlog.keys import shard_of
from eventlog.log import EncodedEvent
from eventlog.redis_streams import RedisEventLog
from projections.database.readiness import prepare
from projections.sql import query
from scoreline.local.embedded import embedded_servers
from scoreline.servers.addresses import Servers

BATCH = 2_000
SHARDS = 4
EVENT_TYPES = ("date", "text", "int4", "int4", "text", "text", "timestamptz", "text", "bytea")


async def drain(servers: Servers, lives: Sequence[list[EncodedEvent]], workers: int) -> float:
    """Drain a preloaded log; returns events a second."""
    await _reset(servers)
    log = RedisEventLog.from_url(servers.redis_url, shards=SHARDS)
    await preload(log, lives)
    await log.aclose()
    async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as conn:
        async with storage_workers(servers, workers, batch_size=BATCH):
            started = time.perf_counter()
            await until_completed(conn, len(lives))
            took = time.perf_counter() - started
        await _assert_all_stored(conn, len(lives))
    return len(lives) * 4 / took


async def _assert_all_stored(conn: AsyncConnection[Any], evaluations: int) -> None:
    cursor = await conn.execute(
        "SELECT (SELECT count(*) FROM events WHERE verdict = 'applied'), (SELECT count(*) FROM scorecards),"
        " (SELECT count(*) FROM evaluations WHERE state = 'completed'), (SELECT count(*) FROM quarantine)"
    )
    counted = await cursor.fetchone()
    if counted != (evaluations * 4, evaluations, evaluations, 0):
        raise RuntimeError(f"the tables do not hold what was written: {counted}")


async def raw_read(servers: Servers, lives: Sequence[list[EncodedEvent]]) -> float:
    """Read and acknowledge as many plain entries; returns entries a second."""
    await _reset(servers)
    redis = Redis.from_url(servers.redis_url)
    streams = await _fill_plain_streams(redis, lives)
    started = time.perf_counter()
    read = 0
    for stream in streams:
        while found := await redis.xreadgroup("limit", "bench", {stream: ">"}, count=BATCH):
            entries: Any = found[0][1]  # type: ignore[index]  # one stream was asked for
            await redis.xack(stream, "limit", *(entry_id for entry_id, _ in entries))
            read += len(entries)
    took = time.perf_counter() - started
    await redis.aclose()
    if read != len(lives) * 4:
        raise RuntimeError(f"read {read} entries")
    return read / took


async def _fill_plain_streams(redis: Redis, lives: Sequence[list[EncodedEvent]]) -> list[str]:
    streams = [f"bench:{shard}" for shard in range(SHARDS)]
    for stream in streams:
        await redis.xgroup_create(stream, "limit", id="0", mkstream=True)
    for at in range(0, len(lives), BATCH):
        async with redis.pipeline(transaction=False) as pipe:
            for records in lives[at : at + BATCH]:
                stream = streams[shard_of(records[0].event.evaluation_id, SHARDS)]
                for event, body in records:
                    fields: Any = fields_of(event, body)
                    pipe.xadd(stream, fields)
            await pipe.execute()
    return streams


async def raw_copy(servers: Servers, lives: Sequence[list[EncodedEvent]]) -> float:
    """COPY the same rows into a staging table, and insert them from there; returns rows a second."""
    await _reset(servers)
    async with await AsyncConnection.connect(servers.postgres_url) as conn:
        cursor = await conn.execute("SELECT date_trunc('month', now())::date")
        month = (await cursor.fetchone() or [None])[0]
        await conn.execute("SELECT ensure_events_partition(%s)", [month])
        await conn.execute(
            "CREATE TEMP TABLE staging (LIKE events INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
        )
        await conn.commit()
        rows = [_row(month, record) for records in lives for record in records]
        into_staging = query("copy_events").replace("COPY events", "COPY staging")
        started = time.perf_counter()
        for at in range(0, len(rows), BATCH):
            async with conn.cursor() as copying, copying.copy(into_staging) as copy:
                copy.set_types(EVENT_TYPES)
                for row in rows[at : at + BATCH]:
                    await copy.write_row(row)
            await conn.execute("INSERT INTO events SELECT * FROM staging")
            await conn.commit()
        took = time.perf_counter() - started
        counted = await (await conn.execute("SELECT count(*) FROM events")).fetchone()
    if counted != (len(rows),):
        raise RuntimeError(f"copied {counted} rows")
    return len(rows) / took


def _row(month: object, record: EncodedEvent) -> tuple[object, ...]:
    event, body = record
    where = (month, event.evaluation_id, event.attempt, event.sequence)
    return (*where, event.type, "applied", event.occurred_at, "1794799262346-0", body)


async def _reset(servers: Servers) -> None:
    redis = Redis.from_url(servers.redis_url)
    await redis.flushall()
    await redis.aclose()
    tables = "batches, events, gap_bridges, quarantine, evaluations, scorecards, batch_progress"
    async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as conn:
        await conn.execute(f"TRUNCATE {tables}")
        await conn.execute("CHECKPOINT")


async def measure(servers: Servers, evaluations: int, pairs: int, workers: int) -> dict[str, object]:
    """Measure limit and drain in turn."""
    await prepare(servers.postgres_url, shards=SHARDS)
    lives = [life(number, "bench") for number in range(evaluations)]
    limits, drains = [], []
    for pair in range(pairs):
        read = await raw_read(servers, lives)
        copy = await raw_copy(servers, lives)
        limits.append(1 / (1 / read + 1 / copy))
        drains.append(await drain(servers, lives, workers))
        print(
            f"pair {pair + 1}: read {read:,.0f}/s, copy {copy:,.0f}/s, limit {limits[-1]:,.0f}/s, "
            f"drain {drains[-1]:,.0f}/s, ratio {drains[-1] / limits[-1]:.2f}",
            file=sys.stderr,
        )
    return {
        "evaluations": evaluations,
        "events": evaluations * 4,
        "pairs": pairs,
        "workers": workers,
        "drain_events_per_s": round(median(drains)),
        "limit_events_per_s": round(median(limits)),
        "ratio": round(median(drains) / median(limits), 3),
    }


def main() -> None:
    """Measure on embedded servers of the bench's own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=30_000)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="storage workers, one a core by default")
    parser.add_argument("--json", action="store_true", help="print only one JSON object on stdout")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root,
        embedded_servers(Path(root)) as servers,
    ):
        result = asyncio.run(measure(servers, args.evaluations, args.pairs, args.workers))
    print(json.dumps(result) if args.json else "\n".join(f"{k}: {v}" for k, v in result.items()))


if __name__ == "__main__":
    main()
