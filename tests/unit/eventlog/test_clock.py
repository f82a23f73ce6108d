"""The server's time, extrapolated by a process between two reads."""

from datetime import timedelta

import pytest

from eventlog.clock import ClockNotSynchronized, ServerClock
from tests.builders import START


def test_server_time_advances_with_the_monotonic_clock() -> None:
    """Between reads the clock adds monotonic time to the server's; the host's wall clock has no effect."""
    ticks = [100.0]
    clock = ServerClock(lambda: ticks[0])
    clock.synchronize(START)
    ticks[0] += 90
    assert clock.now() == START + timedelta(seconds=90)
    clock.synchronize(START)
    assert clock.now() == START


def test_reading_the_clock_before_the_server_is_an_error() -> None:
    """Without a time from the server the clock raises, so no decision is made by the host's clock."""
    with pytest.raises(ClockNotSynchronized):
        ServerClock(lambda: 0.0).now()
