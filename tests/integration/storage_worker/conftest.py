"""A site of real servers for storage workers."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.worker import (
    Site,
    site,
)


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    async with site(redis_url, postgres_url) as made:
        yield made
