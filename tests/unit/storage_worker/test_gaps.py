"""The circuit breaker on the gap rate and the gap policy, with time as an argument."""

from datetime import timedelta

import pytest

from storage_worker.gaps import BreakerLimits, GapBreaker, GapPolicy
from storage_worker.settings import StorageSettings

LIMITS = BreakerLimits(rate=0.1, minimum=100, window=30.0, cooldown=60.0)
START = 1_000.0


@pytest.fixture
def breaker() -> GapBreaker:
    return GapBreaker(LIMITS)


# The breaker.


def test_the_breaker_is_closed_at_first(breaker):
    """The storage worker waits for gaps until the gap rate is high."""
    assert not breaker.is_open(START)


def test_the_breaker_opens_above_the_gap_rate(breaker):
    """The observation that exceeds the limit opens the breaker, and reports it once."""
    assert breaker.observe(START, evaluations=100, gaps=11)
    assert breaker.is_open(START)


def test_the_breaker_stays_closed_at_the_limit(breaker):
    """The limit itself does not open the breaker."""
    assert not breaker.observe(START, evaluations=100, gaps=10)
    assert not breaker.is_open(START)


def test_the_breaker_needs_a_minimum_of_observations(breaker):
    """Below the minimum the breaker stays closed, even with a gap in every evaluation."""
    assert not breaker.observe(START, evaluations=99, gaps=99)
    assert not breaker.is_open(START)


def test_observations_add_up_within_a_window(breaker):
    """Several small batches count as much as one large batch."""
    for second in range(9):
        assert not breaker.observe(START + second, evaluations=10, gaps=2)
    assert breaker.observe(START + 9, evaluations=10, gaps=2)


def test_a_new_window_starts_at_zero(breaker):
    """Observations of an earlier window do not count."""
    assert not breaker.observe(START, evaluations=99, gaps=99)
    assert not breaker.observe(START + LIMITS.window, evaluations=1, gaps=1)
    assert not breaker.observe(START + LIMITS.window, evaluations=98, gaps=0)
    assert breaker.observe(START + LIMITS.window, evaluations=1, gaps=50)


def test_a_window_lasts_exactly_its_length(breaker):
    """Observations count until the last moment of their window."""
    breaker.observe(START, evaluations=99, gaps=99)
    assert breaker.observe(START + LIMITS.window - 0.001, evaluations=1, gaps=0)


def test_the_breaker_closes_after_the_cooldown(breaker):
    """After the cooldown the storage worker waits for gaps again."""
    breaker.observe(START, evaluations=100, gaps=100)
    assert breaker.is_open(START + LIMITS.cooldown - 0.001)
    assert not breaker.is_open(START + LIMITS.cooldown)


def test_an_open_breaker_does_not_open_again(breaker):
    """Further gaps neither prolong the cooldown nor are reported again."""
    breaker.observe(START, evaluations=100, gaps=100)
    assert not breaker.observe(START + 10, evaluations=1_000, gaps=1_000)
    assert not breaker.is_open(START + LIMITS.cooldown)


def test_the_breaker_can_open_again_after_the_cooldown(breaker):
    """Each opening needs a window of its own: earlier observations do not count twice."""
    breaker.observe(START, evaluations=100, gaps=100)
    later = START + LIMITS.cooldown
    assert not breaker.observe(later, evaluations=99, gaps=99)
    assert breaker.observe(later + 1, evaluations=1, gaps=1)
    assert breaker.is_open(later + 1)


def test_the_default_limits_need_many_gaps():
    """A single evaluation with a gap in a small batch does not open the breaker."""
    usual = GapBreaker()
    assert not usual.observe(START, evaluations=199, gaps=199)
    assert usual.observe(START, evaluations=1, gaps=0)


# The gap policy.


def test_a_gap_is_bridged_once_it_is_as_old_as_the_time_out():
    """Entries that arrived before the returned time have waited for the time-out."""
    policy = GapPolicy(timedelta(seconds=30), timedelta(seconds=5))
    assert policy.bridge_until_ms(100_000) == 70_000


def test_a_time_out_may_be_a_fraction_of_a_second():
    """Time-outs are not rounded to seconds."""
    assert GapPolicy(timedelta(milliseconds=250), timedelta(0)).bridge_until_ms(1_000) == 750


def test_degraded_mode_bridges_every_gap_at_once():
    """Warnings are still logged only for gaps older than the limit."""
    policy = GapPolicy(timedelta(seconds=30), timedelta(seconds=5)).degraded()
    assert policy.bridge_until_ms(100_000) == 100_000
    assert policy.warning == timedelta(seconds=5)


def test_a_gap_is_warned_of_from_the_limit_on():
    """A younger gap may be jitter and is not logged."""
    policy = GapPolicy(timedelta(seconds=30), timedelta(seconds=5))
    assert not policy.needs_warning(100_000, 104_999)
    assert policy.needs_warning(100_000, 105_000)


@pytest.mark.parametrize(
    ("gap_timeout", "interval"),
    [
        (timedelta(seconds=30), 15.0),
        (timedelta(seconds=4), 2.0),
        (timedelta(hours=1), 15.0),
        (timedelta(0), 0.1),
    ],
)
def test_the_sweep_interval_follows_the_time_out(gap_timeout, interval):
    """A gap is bridged within one and a half time-outs, and a time-out of zero does not busy-loop."""
    settings = StorageSettings("redis://", "postgresql://", "worker-1", gap_timeout=gap_timeout)
    assert settings.sweep_interval.total_seconds() == interval
