"""Tests that ask for `form`, `queues` or `books` run on each form of the log, the queue or the ledger."""

from collections.abc import AsyncIterator

import pytest
from psycopg import AsyncConnection

from eventlog.keys import DEFAULT_SHARDS
from projections.database.connection import make_pool
from projections.database.readiness import prepare
from tests.conformance.eventlog.log_forms import Form, MemoryForm, RedisForm
from tests.conformance.projections.ledger_forms import LedgerForm, MemoryLedgerForm, PostgresLedgerForm
from tests.conformance.taskqueue.queue_forms import MemoryQueueForm, QueueForm, RedisQueueForm


@pytest.fixture(params=["memory", "redis"])
async def form(request: pytest.FixtureRequest) -> AsyncIterator[Form]:
    """An empty log of each form in turn."""
    chosen: Form = (
        MemoryForm() if request.param == "memory" else RedisForm(request.getfixturevalue("redis_url"))
    )
    yield chosen
    await chosen.aclose()


@pytest.fixture
async def redis_form(redis_url: str) -> AsyncIterator[RedisForm]:
    """The form on Redis, where a test is about Redis itself."""
    chosen = RedisForm(redis_url)
    yield chosen
    await chosen.aclose()


@pytest.fixture(params=["memory", "redis"])
async def queues(request: pytest.FixtureRequest) -> AsyncIterator[QueueForm]:
    """A task queue, a batch registry and an executor registry of each form in turn, all empty."""
    chosen: QueueForm = (
        MemoryQueueForm()
        if request.param == "memory"
        else RedisQueueForm(request.getfixturevalue("redis_url"))
    )
    yield chosen
    await chosen.aclose()


@pytest.fixture
async def redis_queues(redis_url: str) -> AsyncIterator[RedisQueueForm]:
    """The form on Redis, where a test is about Redis itself."""
    chosen = RedisQueueForm(redis_url)
    yield chosen
    await chosen.aclose()


@pytest.fixture(params=["memory", "postgres"])
async def books(request: pytest.FixtureRequest) -> AsyncIterator[LedgerForm]:
    """An empty ledger of each form in turn."""
    if request.param == "memory":
        yield MemoryLedgerForm()
        return
    url = request.getfixturevalue("postgres_url")
    await prepare(url, shards=DEFAULT_SHARDS)
    async with make_pool(url, size=2) as pool, await AsyncConnection.connect(url, autocommit=True) as conn:
        yield PostgresLedgerForm(pool, conn)
