"""The servers that a history is read from."""

from collections.abc import AsyncIterator

import pytest

from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.sources import open_sources
from scoreline.servers.addresses import Servers
from scoreline.servers.availability import Unavailable
from scoreline.settings import load_settings
from storage_worker.settings import Ordering
from tests.builders import history
from tests.integration.worker import Site, site

NOWHERE = "redis://:hunter2@127.0.0.1:1/0"


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    """Servers with two events in the stream and none in the tables."""
    async with site(redis_url, postgres_url) as made:
        await made.append(history("queued provisioning"))
        yield made


@pytest.mark.parametrize(
    ("origin", "redis", "postgres", "entries"),
    [
        (Origin.BOTH, True, True, 2),
        (Origin.REDIS, True, False, 2),
        (Origin.POSTGRES, False, True, 0),
    ],
)
async def test_only_the_wanted_servers_are_queried(
    here: Site, origin: Origin, redis: bool, postgres: bool, entries: int
) -> None:
    """The history has the status of each; what was not queried finds nothing."""
    servers = Servers(here.redis_url, here.postgres_url)
    async with open_sources(load_settings(), servers, origin) as sources:
        found = await sources.history("evaluation-1")
        assert (found.redis.queried, found.postgres.queried) == (redis, postgres)
        assert (found.redis.found, len(found.lines)) == (entries, entries)
        assert await sources.near(["evaluation-1"]) == []


async def test_one_unavailable_server_is_a_status_and_two_are_an_error(here: Site) -> None:
    """The status has the problem without the password of the URL."""
    async with open_sources(load_settings(), Servers(NOWHERE, here.postgres_url), Origin.BOTH) as sources:
        found = await sources.history("evaluation-1")
    assert "does not answer" in found.redis.problem
    assert "hunter2" not in found.redis.problem
    assert (found.redis.answered, found.postgres.answered) == (False, True)
    with pytest.raises(Unavailable, match="Redis at"):
        async with open_sources(load_settings(), Servers(NOWHERE, here.postgres_url), Origin.REDIS):
            pass


@pytest.mark.parametrize(("ordering", "seconds"), [(Ordering.STRICT, 7.0), (Ordering.DEGRADED, 0.0)])
async def test_degraded_ordering_waits_for_no_gap(here: Site, ordering: Ordering, seconds: float) -> None:
    """A storage worker in degraded mode bridges at once, and so does a history of the stream alone."""
    settings = load_settings().model_copy(update={"ordering": ordering, "gap_timeout": 7.0})
    async with open_sources(settings, Servers(here.redis_url, here.postgres_url), Origin.REDIS) as sources:
        assert sources.gap_timeout.total_seconds() == seconds


async def test_a_closed_connection_is_opened_again(here: Site) -> None:
    """A followed evaluation survives the loss of its connection."""
    servers = Servers(here.redis_url, here.postgres_url)
    async with open_sources(load_settings(), servers, Origin.POSTGRES) as sources:
        first = await sources.connection()
        assert first is not None
        assert await sources.connection() is first
        await first.close()
        assert not await sources.is_batch("no-batch")
        assert await sources.connection() is not first
