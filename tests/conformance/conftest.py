"""Every test that asks for `form` or `queues` runs once on each form of the log, or of the task queue."""

from collections.abc import AsyncIterator

import pytest

from tests.conformance.forms import Form, MemoryForm, RedisForm
from tests.conformance.task_queue_forms import MemoryQueueForm, QueueForm, RedisQueueForm


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
    """A task queue, a board and an attendance of each form in turn, all empty."""
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
