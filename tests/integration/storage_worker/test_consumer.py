"""The consumer of wake-ups on real servers: at-least-once delivery, acknowledgement after the commit."""

from collections.abc import AsyncIterator

import pytest

from tests.builders import history
from tests.integration.worker import Site, commits_blocked, site, worker
from tests.waiting import until

LIFE = "queued provisioning running responded scored completed"


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    async with site(redis_url, postgres_url) as made:
        yield made


async def test_acknowledgement_follows_the_commit(here: Site) -> None:
    """While the transaction waits, the wake-up is pending; once the events are stored, none is."""
    async with worker(here):
        async with commits_blocked(here):
            await here.append(history(LIFE, evaluation_id="e"))
            await until(here.has_waiting_commit)
            assert await here.pending() == 1
            assert await here.state("e") is None

        async def acknowledged() -> bool:
            return await here.pending() == 0

        await until(acknowledged)
        assert await here.state("e") == "completed"
