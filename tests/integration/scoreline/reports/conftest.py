"""Batches on real servers, for tests of their reports."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.scoreline.batch_harness import Harness, harness


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Harness]:
    async with harness(postgres_url, redis_url) as made:
        yield made
