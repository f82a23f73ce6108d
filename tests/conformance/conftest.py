"""Fixtures that run a test on every implementation of the event log, the task queue and the ledger."""

from collections.abc import AsyncIterator

import pytest
from psycopg import AsyncConnection

from projections.database.connection import make_pool
from tests.conformance.eventlog.log_forms import Form, MemoryForm, RedisForm
from tests.conformance.projections.ledger.ledger_forms import (
    LedgerForm,
    MemoryLedgerForm,
    PostgresLedgerForm,
)
from tests.conformance.taskqueue.queue_forms import MemoryQueueForm, QueueForm, RedisQueueForm


@pytest.fixture(params=["memory", "redis"])
async def form(request: pytest.FixtureRequest) -> AsyncIterator[Form]:
    """An empty log, in memory and on Redis in turn."""
    chosen: Form = (
        MemoryForm() if request.param == "memory" else RedisForm(request.getfixturevalue("redis_url"))
    )
    yield chosen
    await chosen.aclose()


@pytest.fixture
async def redis_form(redis_url: str) -> AsyncIterator[RedisForm]:
    """The log on Redis, for tests of Redis itself."""
    chosen = RedisForm(redis_url)
    yield chosen
    await chosen.aclose()


@pytest.fixture(params=["memory", "redis"])
async def queues(request: pytest.FixtureRequest) -> AsyncIterator[QueueForm]:
    """An empty task queue, batch registry and executor registry, in memory and on Redis in turn."""
    chosen: QueueForm = (
        MemoryQueueForm()
        if request.param == "memory"
        else RedisQueueForm(request.getfixturevalue("redis_url"))
    )
    yield chosen
    await chosen.aclose()


@pytest.fixture
async def redis_queues(redis_url: str) -> AsyncIterator[RedisQueueForm]:
    """The queue on Redis, for tests of Redis itself."""
    chosen = RedisQueueForm(redis_url)
    yield chosen
    await chosen.aclose()


@pytest.fixture(params=["memory", "postgres"])
async def ledgers(request: pytest.FixtureRequest) -> AsyncIterator[LedgerForm]:
    """An empty ledger, in memory and on Postgres in turn."""
    if request.param == "memory":
        yield MemoryLedgerForm()
        return
    url = request.getfixturevalue("postgres_url")
    async with make_pool(url, size=2) as pool, await AsyncConnection.connect(url, autocommit=True) as conn:
        yield PostgresLedgerForm(pool, conn)
