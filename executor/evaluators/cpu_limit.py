"""A limit on the CPU time of untrusted regular expressions.

Python's matcher checks for signals while it runs, so a timer's signal interrupts even catastrophic
backtracking, without overhead in the normal case. Only the main thread can be interrupted so. The timer
counts CPU time in user mode (ITIMER_VIRTUAL), so a busy machine does not trigger it sooner.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfTime(BaseException):  # not an Exception, so that nothing in between swallows it
    """The limit has passed."""


def can_limit() -> bool:
    """Whether this thread is one whose work can be cut short."""
    return threading.current_thread() is threading.main_thread()


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` inside the block when it has used up its time; a no-op off the main thread."""
    if not can_limit():
        yield
        return
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signals have it
        if armed:
            raise OutOfTime

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if before is not signal.SIG_DFL:  # which would end the process if a signal were still pending
            signal.signal(signal.SIGVTALRM, before)
