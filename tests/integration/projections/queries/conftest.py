"""A database with batches, as a coordinator and a storage worker leave them."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.scoreline.batch_harness import Harness, harness


@pytest.fixture
async def here(postgres_url: str) -> AsyncIterator[Harness]:
    async with harness(postgres_url, redis_url="") as made:
        yield made
