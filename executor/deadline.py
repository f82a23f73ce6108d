"""A deadline for an awaitable, whose timer is set only once the awaitable suspends.

Many targets and most evaluators return without suspending. A timer could not interrupt them, and setting
one takes longer than their call: timers were a tenth of the cost of an evaluation.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlineExceeded(Exception):  # noqa: N818 - what happened
    """The call did not return before its deadline."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not done after {seconds:g} s")
        self.seconds = seconds


async def with_deadline(seconds: float, work: Awaitable[T]) -> T:
    """Await something for at most `seconds`; raises `DeadlineExceeded`, or whatever the work raises."""
    if isinstance(work, Coroutine):
        try:
            awaited = work.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # what a coroutine returns
        work = _resume(work, awaited)
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            return await work
    except TimeoutError:
        if timeout.expired():
            raise DeadlineExceeded(seconds) from None
        raise


@coroutine
def _resume(work: Coroutine[Any, Any, T], awaited: object) -> Generator[Any, Any, T]:
    """Drive a coroutine that has started, as `await` would: exceptions thrown in are passed on to it."""
    while True:
        try:
            value = yield awaited
        except BaseException as error:  # noqa: BLE001 - cancellation above all
            step = partial(work.throw, error)
        else:
            step = partial(work.send, value)
        try:
            awaited = step()
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # as above
