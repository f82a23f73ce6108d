"""An event loop in virtual time: it never waits; with nothing ready its clock jumps to the next timer."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class NothingLeftToHappen(RuntimeError):  # noqa: N818 - names what it found
    """Nothing is ready and no timer is set: the wait can never end."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks in an order that depends on nothing but the callbacks."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self  # asyncio waits for the next timer in its selector, which is this object

    def time(self) -> float:
        """Return the virtual time, in seconds since the run began."""
        return self._now

    def leap(self, seconds: float) -> None:
        """Advance the clock over some idle time."""
        self._now += seconds

    def select(self, timeout: float | None) -> list[object]:
        """Advance to the next timer, at once."""
        if timeout is None:
            raise NothingLeftToHappen
        self._now += max(0.0, timeout)
        return []

    def _process_events(self, _events: list[object]) -> None:
        """Do no I/O."""

    def _write_to_self(self) -> None:
        """Do nothing: there are no other threads."""


def run_virtually(main: Coroutine[Any, Any, T], loop: VirtualLoop) -> T:
    """Run to the end, then cancel whatever is still running."""
    try:
        return loop.run_until_complete(main)
    finally:
        end_all(loop)
        loop.close()


def end_all(loop: VirtualLoop) -> None:
    """Cancel every task that is left, and let each come to its end."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:  # an empty gather would look for the thread's own loop
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
