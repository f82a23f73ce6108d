"""A limit on the CPU time of code that can't be trusted to end: a pattern somebody wrote.

Python's matcher looks for signals as it goes, so a timer's signal gets it out of even the worst pattern,
at no cost where all goes well. Only the main thread can be got out like that. The timer is the one of
the CPU time in user mode, which nothing else here uses, and a machine that is busy elsewhere sets it
off no sooner.
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
        if before is not signal.SIG_DFL:  # which would end the process if a signal were still on its way
            signal.signal(signal.SIGVTALRM, before)
