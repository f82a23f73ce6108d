"""A database whose tables are verified against their log."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.place import Place, place


@pytest.fixture
async def here(postgres_url: str) -> AsyncIterator[Place]:
    async with place(postgres_url) as made:
        yield made
