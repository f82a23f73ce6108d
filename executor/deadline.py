"""A limit on how long something may take, set only once it waits.

Many targets and most evaluators answer without waiting for anything. No alarm could interrupt them, and to
set one takes longer than their answer: timers were a tenth of what an evaluation costs.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class DeadlineExceeded(Exception):  # noqa: N818 - what happened
    """It took longer than it may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not done after {seconds:g} s")
        self.seconds = seconds


async def with_deadline(seconds: float, work: Awaitable[T]) -> T:
    """Await something for so long; raises `DeadlineExceeded`, or whatever the work raises."""
    if isinstance(work, Coroutine):
        try:
            waits_for = work.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # what a coroutine returns
        work = _resumed(work, waits_for)
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if limit.expired():
            raise DeadlineExceeded(seconds) from None
        raise


@coroutine
def _resumed(work: Coroutine[Any, Any, T], waits_for: object) -> Generator[Any, Any, T]:
    """Go on with a coroutine that has begun, as `await` would: what is thrown at us is meant for it."""
    while True:
        try:
            heard = yield waits_for
        except BaseException as error:  # noqa: BLE001 - cancellation above all
            step = partial(work.throw, error)
        else:
            step = partial(work.send, heard)
        try:
            waits_for = step()
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # as above
