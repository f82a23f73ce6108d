"""The limit on CPU time: a search is interrupted, and no timer or handler is left behind."""

import re
import signal
import threading
from contextlib import suppress

import pytest

from executor.evaluators.cpu_limit import OutOfTime, can_limit, cpu_limit


def test_a_search_is_interrupted_at_its_limit():
    """Even catastrophic backtracking, which would take centuries."""
    with pytest.raises(OutOfTime), cpu_limit(0.02):
        re.search(r"(a+)+$", "a" * 60 + "b")


def test_code_that_catches_every_exception_is_interrupted_too():
    """`OutOfTime` passes through `except Exception`."""
    with pytest.raises(OutOfTime), cpu_limit(0.02), suppress(Exception):
        re.search(r"(a+)+$", "a" * 60 + "b")


def test_the_timer_is_off_and_the_handler_is_back_after_the_block():
    """An application's own handler of the signal is restored."""
    received: list[int] = []
    before = signal.signal(signal.SIGVTALRM, lambda number, _frame: received.append(number))
    try:
        with cpu_limit(60):
            assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0
        assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)
        signal.raise_signal(signal.SIGVTALRM)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert received == [signal.SIGVTALRM]


def test_a_signal_that_arrives_after_the_block_is_ignored():
    """The default action would end the process."""
    before = signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    try:
        with cpu_limit(60):
            pass
        signal.raise_signal(signal.SIGVTALRM)
    finally:
        signal.signal(signal.SIGVTALRM, before)


def test_off_the_main_thread_there_is_no_limit():
    """No timer is set: its signal would interrupt the main thread."""
    seen: list[object] = []

    def work() -> None:
        with cpu_limit(60):
            seen.extend([can_limit(), signal.getitimer(signal.ITIMER_VIRTUAL)[0]])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False, 0.0]
    assert can_limit()
