"""Waiting for a condition, so that no test sleeps and hopes."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

_POLL = 0.005
_LONGEST_POLL = 0.2
_SHARE = 4
"""A condition that takes long to ask is asked less often: a fifth of the time at most goes into asking."""


async def until(
    condition: Callable[[], Any],
    timeout: float = 60,  # noqa: ASYNC109 - fails the test with its own words
) -> Any:
    """The first true value of `condition`, sync or async, asked every few milliseconds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        asked = loop.time()
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        if loop.time() > deadline:
            pytest.fail(f"not true within {timeout} s: {_described(condition)}; last: {value!r}")
        await asyncio.sleep(min(_LONGEST_POLL, max(_POLL, _SHARE * (loop.time() - asked))))


def _described(condition: Callable[[], Any]) -> str:
    try:
        return " ".join(inspect.getsource(condition).split())
    except (OSError, TypeError):
        return repr(condition)
