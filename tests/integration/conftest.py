"""A migrated database and a connection to it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import AsyncConnection

from eventlog.keys import DEFAULT_SHARDS
from projections.database.readiness import prepare


@pytest.fixture
async def database(postgres_url: str) -> str:
    await prepare(postgres_url, shards=DEFAULT_SHARDS)
    return postgres_url


@pytest.fixture
async def conn(database: str) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        yield connection
