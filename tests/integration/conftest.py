"""A connection to a migrated database."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import AsyncConnection


@pytest.fixture
async def conn(postgres_url: str) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(postgres_url, autocommit=True) as connection:
        yield connection
