"""Reads the entries of one evaluation from Redis and Postgres, once or repeatedly.

The stream is read before the tables: an entry that leaves the stream is in Postgres by then, so that none
is missing from both. One unavailable server is a status, not an error, as long as the other answers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import psycopg

from eventlog import keys
from eventlog.log import LogUnavailable
from eventlog.redis_streams import LOG_ERRORS, RedisEventLog
from eventlog.timeline import Cursor
from projections.database.connection import Connection, connect_read_only
from projections.database.readiness import check_ready
from projections.folds.change import EvaluationRow
from projections.queries.evaluation_history import is_batch, nearby_ids, read_history
from projections.queries.evaluation_records import StoredHistory
from scoreline.reports.replay.history import NOT_QUERIED, EvaluationHistory, SourceStatus
from scoreline.reports.replay.history_builder import NOTHING, SourceRecords, build_history
from scoreline.reports.replay.origin import Origin
from scoreline.servers.addresses import Servers
from scoreline.servers.availability import Unavailable
from scoreline.servers.postgres_check import check_postgres
from scoreline.servers.redis_check import check_redis
from scoreline.settings import Settings
from storage_worker.settings import Ordering
from storage_worker.stream_diff import MAX_ENTRIES, StreamDiff, diff_stream

UNAVAILABLE = (LogUnavailable, psycopg.OperationalError, psycopg.InterfaceError)
"""Errors of a server that is temporarily unavailable."""


@dataclass(slots=True)
class Sources:
    """The queried servers; one that did not answer at the start is left out."""

    log: RedisEventLog | None
    postgres_url: str | None
    gap_timeout: timedelta
    redis: SourceStatus = NOT_QUERIED
    postgres: SourceStatus = NOT_QUERIED
    conn: Connection | None = None
    newest: bytes = b"0-0"
    """The id of the last entry that was read from the stream."""

    async def history(self, evaluation_id: str) -> EvaluationHistory:
        """Read all entries of an evaluation and return its history."""
        now_ms = await self.log.now_ms() if self.log else 0
        [raw] = await self.log.read([evaluation_id], limit=MAX_ENTRIES + 1) if self.log else [[]]
        self.newest = raw[-1][0] if raw else self.newest
        stored = await self._stored(evaluation_id)
        diff = diff_stream(evaluation_id, raw, _blank_row(evaluation_id, stored))
        return build_history(self._records(diff, stored, now_ms, len(raw)))

    def _records(self, diff: StreamDiff, stored: StoredHistory, now_ms: int, found: int) -> SourceRecords:
        return SourceRecords(
            diff.evaluation_id,
            stored,
            diff.entries,
            diff.rejected,
            SourceStatus(queried=True, found=len(stored.events)) if self.postgres_url else self.postgres,
            SourceStatus(queried=True, found=found) if self.log else self.redis,
            now_ms,
            None if self.postgres_url else self.gap_timeout,
        )

    async def _stored(self, evaluation_id: str) -> StoredHistory:
        conn = await self.connection()
        return await read_history(conn, evaluation_id) if conn else NOTHING

    async def connection(self) -> Connection | None:
        """Return the connection to Postgres, reopened where it is closed; None where it is not queried."""
        if self.postgres_url is None:
            return None
        if self.conn is None or self.conn.closed:
            self.conn = await connect_read_only(self.postgres_url)
        return self.conn

    async def near(self, probes: list[str]) -> list[str]:
        """Return ids near some positions in their order; none where Postgres is not queried."""
        conn = await self.connection()
        return await nearby_ids(conn, probes) if conn else []

    async def is_batch(self, identifier: str) -> bool:
        """Whether this is the id of a batch."""
        conn = await self.connection()
        return conn is not None and await is_batch(conn, identifier)

    async def wait(self, evaluation_id: str, *, seconds: float) -> None:
        """Return once the stream has a new entry, or after the given seconds."""
        if self.log is None:
            await asyncio.sleep(seconds)
            return
        stream = keys.events_key(keys.shard_of(evaluation_id, self.log.shards), evaluation_id)
        with LOG_ERRORS:
            await self.log.redis.xread({stream: self.newest}, count=1, block=int(seconds * 1000))

    async def aclose(self) -> None:
        """Close the connections."""
        if self.log:
            await self.log.aclose()
        if self.conn:
            await self.conn.close()


def _blank_row(evaluation_id: str, stored: StoredHistory) -> EvaluationRow | None:
    """Return a row of the right batch whose cursor covers nothing, so that every entry is read."""
    if stored.evaluation is None:
        return None
    return EvaluationRow(evaluation_id, stored.evaluation.batch_id, stored.evaluation.month, Cursor())


@asynccontextmanager
async def open_sources(settings: Settings, servers: Servers, origin: Origin) -> AsyncIterator[Sources]:
    """Open the queried servers; raises `Unavailable` where none answers."""
    problems: list[Unavailable] = []
    redis = postgres = NOT_QUERIED
    if origin is not Origin.POSTGRES:
        redis = await _probe(check_redis(servers.redis_url), problems)
    if origin is not Origin.REDIS:
        postgres = await _probe(_check_tables(servers, settings), problems)
    if not (redis.answered or postgres.answered):
        raise problems[0]
    log = RedisEventLog.from_url(servers.redis_url, shards=settings.shards) if redis.answered else None
    seconds = 0.0 if settings.ordering is Ordering.DEGRADED else settings.gap_timeout
    url = servers.postgres_url if postgres.answered else None
    sources = Sources(log, url, timedelta(seconds=seconds), redis, postgres)
    try:
        yield sources
    finally:
        await sources.aclose()


async def _probe(check: Awaitable[None], problems: list[Unavailable]) -> SourceStatus:
    try:
        await check
    except Unavailable as problem:
        problems.append(problem)
        return SourceStatus(queried=True, problem=str(problem))
    return SourceStatus(queried=True)


async def _check_tables(servers: Servers, settings: Settings) -> None:
    await check_postgres(servers.postgres_url)
    await check_ready(servers.postgres_url, shards=settings.shards)
