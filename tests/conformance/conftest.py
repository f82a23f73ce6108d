"""Every test that asks for `form` runs once on each form of the log."""

from collections.abc import AsyncIterator

import pytest

from tests.conformance.forms import Form, MemoryForm, RedisForm


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
