"""The permutation property on real servers: plain XADDs to Redis, several workers, one Postgres."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings
from psycopg import AsyncConnection, sql
from psycopg_pool import AsyncConnectionPool

from eventlog.codec import encode, fields_of
from eventlog.events import Event
from eventlog.keys import DEFAULT_SHARDS, events_key, shard_of
from eventlog.redis_streams import RedisEventLog
from projections.database.connection import make_pool
from projections.store.postgres import PostgresStore
from storage_worker.storage import Storage
from tests.builders import EVALUATION, event, history
from tests.disordered import arrivals, in_order, lives
from tests.dumps import TABLES, postgres_dump
from tests.storage_world import GAP_POLICY

EVERYTHING = sql.SQL(", ").join(sql.Identifier(table) for table in TABLES)


class Harness:
    """Servers that can be emptied, and workers that share them."""

    def __init__(self, log: RedisEventLog, pool: AsyncConnectionPool, conn: AsyncConnection[Any]) -> None:
        self.log, self.pool, self.conn = log, pool, conn

    async def clear(self) -> None:
        await self.log.redis.flushall()
        await self.conn.execute(sql.SQL("TRUNCATE {}").format(EVERYTHING))

    def worker(self) -> Storage:
        """Make a worker that shares only the servers with others."""
        return Storage(self.log, PostgresStore(self.pool), GAP_POLICY)

    async def xadd(self, *events: Event) -> None:
        """Append as a client does that uses no script."""
        for each in events:
            key = each.evaluation_id
            fields: Any = fields_of(each, encode(each))
            await self.log.redis.xadd(events_key(shard_of(key, DEFAULT_SHARDS), key), fields)

    async def ask(self, statement: Any) -> list[Any]:
        return await (await self.conn.execute(statement)).fetchall()


@asynccontextmanager
async def harness(redis_url: str, postgres_url: str) -> AsyncIterator[Harness]:
    """Open the connections once for the property, not once for each example."""
    async with AsyncExitStack() as stack:
        log = RedisEventLog.from_url(redis_url)
        stack.push_async_callback(log.aclose)
        pool = await stack.enter_async_context(make_pool(postgres_url, size=6))
        conn = await stack.enter_async_context(await AsyncConnection.connect(postgres_url, autocommit=True))
        yield Harness(log, pool, conn)


async def in_one_pass(here: Harness, events: Sequence[Event]) -> list[bytes]:
    """Store all events in order, with one worker, in one pass."""
    await here.clear()
    await here.xadd(*events)
    await here.worker().store(ids_of(events))
    return await postgres_dump(here.conn)


async def in_many_passes(here: Harness, random: Random, events: Sequence[Event]) -> tuple[list[bytes], int]:
    """Store with up to three concurrent workers, every few entries."""
    await here.clear()
    workers = [here.worker() for _ in range(random.randint(1, 3))]
    ids = ids_of(events)
    for each in events:
        await here.xadd(each)
        if random.random() < 0.25:
            await asyncio.gather(*(worker.store(ids) for worker in workers))
    await asyncio.gather(*(worker.store(ids) for worker in workers))
    return await postgres_dump(here.conn), sum(worker.counts.lost_races for worker in workers)


def ids_of(events: Sequence[Event]) -> list[str]:
    return sorted({each.evaluation_id for each in events})


def test_any_arrival_gives_the_same_tables(redis_url, postgres_url):
    """The tables are byte for byte equal: every event applied, nothing quarantined, no gap bridged."""
    with asyncio.Runner() as runner:
        stack = harness(redis_url, postgres_url)
        here = runner.run(stack.__aenter__())

        @given(st.randoms(use_true_random=False))
        @settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])
        def check_one(random: Random) -> None:
            written = lives(random, most=3)
            expected = runner.run(in_one_pass(here, in_order(written)))
            dump, _ = runner.run(in_many_passes(here, random, arrivals(random, written)))
            assert dump == expected
            assert runner.run(here.ask("SELECT DISTINCT verdict FROM events")) == [("applied",)]
            assert not [row for row in dump if row.startswith((b"quarantine", b"gap_bridges"))]

        try:
            check_one()
        finally:
            runner.run(stack.__aexit__(None, None, None))


async def test_concurrent_workers_lose_races_and_no_events(redis_url, postgres_url):
    """Fifty reversed histories and six workers at every step: races are lost, events are not."""
    events = [
        e
        for n in range(50)
        for e in history("queued provisioning running completed", evaluation_id=f"e{n:02}")
    ]
    async with harness(redis_url, postgres_url) as here:
        expected = await in_one_pass(here, events)
        await here.clear()
        workers = [here.worker() for _ in range(6)]
        for sequence in (3, 2, 1, 0):
            await here.xadd(*(each for each in events if each.sequence == sequence))
            await asyncio.gather(*(worker.store(ids_of(events)) for worker in workers))
        assert await postgres_dump(here.conn) == expected
        assert sum(worker.counts.lost_races for worker in workers) > 0
        assert sum(worker.counts.events["applied"] for worker in workers) == 200


async def test_stale_conflicting_and_invalid_entries_are_stored_once_by_many_workers(
    redis_url, postgres_url
):
    """Entries that six workers read concurrently are stored, and their cost is counted, once."""
    events = [
        *history("queued provisioning"),
        event("queued:lost", attempt=2),
        *history("running responded", first=2),
        event("provisioning", sequence=1, source="rival"),
        *history("provisioning running completed", attempt=2, first=1),
        event("running", attempt=2, sequence=9),
    ]
    async with harness(redis_url, postgres_url) as here:
        expected = await in_one_pass(here, events)
        await here.clear()
        workers = [here.worker() for _ in range(6)]
        for each in events:
            await here.xadd(each)
            await asyncio.gather(*(worker.store([EVALUATION]) for worker in workers))
        assert await postgres_dump(here.conn) == expected
        assert await here.ask("SELECT verdict, count(*) FROM events GROUP BY 1 ORDER BY 1") == [
            ("applied", 6), ("rejected", 1), ("stale", 2),
        ]  # fmt: skip
        assert await here.ask("SELECT reason FROM quarantine ORDER BY 1") == [("conflict",), ("illegal",)]
        assert await here.ask("SELECT tokens FROM batch_progress") == [(8,)]
