"""A server's time, as a process carries it on."""

from datetime import timedelta

import pytest

from eventlog.clock import ClockNotSynchronized, ServerClock
from tests.builders import START


def test_a_servers_time_goes_on_with_the_monotonic_clock() -> None:
    """Whatever the host's wall clock shows: only what the server returned counts, and what passed since."""
    ticks = [100.0]
    clock = ServerClock(lambda: ticks[0])
    clock.synchronize(START)
    ticks[0] += 90
    assert clock.now() == START + timedelta(seconds=90)
    clock.synchronize(START)
    assert clock.now() == START


def test_a_time_that_was_never_read_is_an_error() -> None:
    """A decision without the server's time would be made by the wrong clock."""
    with pytest.raises(ClockNotSynchronized):
        ServerClock(lambda: 0.0).now()
