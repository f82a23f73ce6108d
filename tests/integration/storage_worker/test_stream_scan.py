"""The scan on real servers: streams that neither a wake-up nor the sweep leads to."""

from collections.abc import AsyncIterator, Sequence

import pytest

from eventlog.keys import DEFAULT_SHARDS, events_key, shard_of
from eventlog.log import EXPIRY_SECONDS, CommitMark
from eventlog.redis_streams import RedisEventLog
from projections.database.connection import make_pool
from projections.store.postgres import PostgresStore
from storage_worker.storage import Storage
from storage_worker.stream_scan import StreamScan
from tests.builders import EVALUATION, history
from tests.integration.worker import Site, site
from tests.storage_world import GAP_POLICY

STREAM = events_key(shard_of(EVALUATION, DEFAULT_SHARDS), EVALUATION)
NO_EXPIRY = -1


class Killed(BaseException):
    """The process ends here: no handler runs."""


class KilledBeforeMark(RedisEventLog):
    """The log of a worker that is killed after its commit, before it marks the streams."""

    async def settle(self, _marks: Sequence[CommitMark]) -> None:
        raise Killed


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    async with site(redis_url, postgres_url) as made:
        yield made


async def test_a_sweep_killed_between_commit_and_mark_leaks_no_stream(here: Site) -> None:
    """The sweep skips ended evaluations, so the next scan marks the stream, and it expires."""
    opening, *rest = history("queued provisioning running completed")
    async with make_pool(here.postgres_url, size=2) as pool:
        tables, log = PostgresStore(pool), RedisEventLog(here.redis)
        storage = Storage(log, tables, GAP_POLICY)
        await here.append([opening])
        await storage.store([EVALUATION])
        await here.append(rest)
        with pytest.raises(Killed):
            await Storage(KilledBeforeMark(here.redis), tables, GAP_POLICY).sweep(unchanged_for=0, page=10)
        assert await here.state(EVALUATION) == "completed"
        assert await storage.sweep(unchanged_for=0, page=10) == 0
        assert await here.redis.ttl(STREAM) == NO_EXPIRY
        await StreamScan(here.redis, storage, shards=DEFAULT_SHARDS).run()
        assert 0 < await here.redis.ttl(STREAM) <= EXPIRY_SECONDS


async def test_a_marked_stream_is_not_stored_again(here: Site) -> None:
    """A scan over ended evaluations writes nothing, since their marks equal their rows."""
    events = history("queued provisioning running completed")
    async with make_pool(here.postgres_url, size=2) as pool:
        storage = Storage(RedisEventLog(here.redis), PostgresStore(pool), GAP_POLICY)
        await here.append(events)
        await storage.store([EVALUATION])
        assert await storage.overlooked([EVALUATION]) == []
        assert await storage.overlooked([EVALUATION, "unknown"]) == ["unknown"]
