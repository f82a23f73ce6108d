"""Consumer groups of wake-ups start at the beginning of their stream, however a worker starts."""

from collections.abc import AsyncIterator

import pytest

from eventlog.keys import GROUP
from storage_worker.app import build_app
from storage_worker.settings import StorageSettings
from tests.builders import history
from tests.integration.worker import WAKE_STREAMS, Site, site, worker
from tests.waiting import until

LIFE = history("queued provisioning running completed", evaluation_id="early")


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    async with site(redis_url, postgres_url) as made:
        yield made


async def completed(here: Site) -> bool:
    return await here.state("early") == "completed"


async def test_a_group_that_starts_at_the_end_is_reset(here: Site) -> None:
    """A worker that died during its start may leave such a group; the wake-ups it skipped are processed."""
    await here.add_plainly(LIFE)
    for stream in WAKE_STREAMS:
        await here.redis.xgroup_create(stream, GROUP, id="$", mkstream=True)
    async with worker(here):
        await until(lambda: completed(here))


async def test_no_wake_up_is_lost_if_redis_is_emptied_while_groups_are_created(here: Site) -> None:
    """The broker then creates groups at the end of the stream; the worker detects this and resets them."""
    app = build_app(StorageSettings(here.redis_url, here.postgres_url, "worker"))
    async with app.lifespan_context():
        await here.redis.flushall()
        await here.add_plainly(LIFE)
        await app.start()
        try:
            await until(lambda: completed(here))
        finally:
            await app.stop()
