"""When waiting for order stops being worth it: the breaker and the patience, told the time."""

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


def test_a_breaker_is_closed_at_first(breaker):
    """Order is waited for until there is a reason not to."""
    assert not breaker.is_open(START)


def test_it_opens_when_the_rate_is_passed(breaker):
    """The very look that passes the limit opens it, and says so once."""
    assert breaker.observe(START, evaluations=100, gaps=11)
    assert breaker.is_open(START)


def test_it_stays_closed_at_the_limit(breaker):
    """The limit may be reached, not passed."""
    assert not breaker.observe(START, evaluations=100, gaps=10)
    assert not breaker.is_open(START)


def test_a_few_looks_mean_nothing(breaker):
    """Below the minimum even a gap in every evaluation is no rule."""
    assert not breaker.observe(START, evaluations=99, gaps=99)
    assert not breaker.is_open(START)


def test_looks_add_up_within_a_window(breaker):
    """Small batches are worth as much as one large one."""
    for second in range(9):
        assert not breaker.observe(START + second, evaluations=10, gaps=2)
    assert breaker.observe(START + 9, evaluations=10, gaps=2)


def test_a_new_window_starts_from_nothing(breaker):
    """What was long ago does not open a breaker today."""
    assert not breaker.observe(START, evaluations=99, gaps=99)
    assert not breaker.observe(START + LIMITS.window, evaluations=1, gaps=1)
    assert not breaker.observe(START + LIMITS.window, evaluations=98, gaps=0)
    assert breaker.observe(START + LIMITS.window, evaluations=1, gaps=50)


def test_a_window_ends_when_its_time_is_over_not_before(breaker):
    """Up to its last moment a window counts."""
    breaker.observe(START, evaluations=99, gaps=99)
    assert breaker.observe(START + LIMITS.window - 0.001, evaluations=1, gaps=0)


def test_it_closes_after_the_cooldown(breaker):
    """Then order is waited for again."""
    breaker.observe(START, evaluations=100, gaps=100)
    assert breaker.is_open(START + LIMITS.cooldown - 0.001)
    assert not breaker.is_open(START + LIMITS.cooldown)


def test_while_open_it_does_not_open_again(breaker):
    """Gaps that go on neither prolong the cooldown nor are announced twice."""
    breaker.observe(START, evaluations=100, gaps=100)
    assert not breaker.observe(START + 10, evaluations=1_000, gaps=1_000)
    assert not breaker.is_open(START + LIMITS.cooldown)


def test_after_the_cooldown_it_may_open_again(breaker):
    """Each time by a window of its own: what opened it the first time does not count twice."""
    breaker.observe(START, evaluations=100, gaps=100)
    later = START + LIMITS.cooldown
    assert not breaker.observe(later, evaluations=99, gaps=99)
    assert breaker.observe(later + 1, evaluations=1, gaps=1)
    assert breaker.is_open(later + 1)


def test_usual_limits_take_many_gaps_to_pass():
    """A single bad evaluation in a small batch never makes the whole worker hurry."""
    usual = GapBreaker()
    assert not usual.observe(START, evaluations=199, gaps=199)
    assert usual.observe(START, evaluations=1, gaps=0)


# Patience.


def test_a_gap_may_be_bridged_once_it_is_as_old_as_the_time_out():
    """What arrived before the returned moment has waited long enough."""
    patience = GapPolicy(timedelta(seconds=30), timedelta(seconds=5))
    assert patience.bridge_until_ms(100_000) == 70_000


def test_a_fraction_of_a_second_counts():
    """Time-outs are not rounded to seconds."""
    assert GapPolicy(timedelta(milliseconds=250), timedelta(0)).bridge_until_ms(1_000) == 750


def test_in_a_hurry_everything_that_is_there_has_waited_long_enough():
    """But warnings are still for what is really late."""
    patience = GapPolicy(timedelta(seconds=30), timedelta(seconds=5)).degraded()
    assert patience.bridge_until_ms(100_000) == 100_000
    assert patience.warning == timedelta(seconds=5)


def test_a_gap_needs_warning_from_the_limit_on():
    """Jitter is not."""
    patience = GapPolicy(timedelta(seconds=30), timedelta(seconds=5))
    assert not patience.needs_warning(100_000, 104_999)
    assert patience.needs_warning(100_000, 105_000)


@pytest.mark.parametrize(
    ("gap_timeout", "interval"),
    [
        (timedelta(seconds=30), 15.0),
        (timedelta(seconds=4), 2.0),
        (timedelta(hours=1), 15.0),
        (timedelta(0), 0.1),
    ],
)
def test_the_sweep_is_often_enough_for_the_time_out(gap_timeout, interval):
    """A gap is bridged within one and a half time-outs, and a time-out of zero does not spin."""
    settings = StorageSettings("redis://", "postgresql://", "worker-1", gap_timeout=gap_timeout)
    assert settings.sweep_interval.total_seconds() == interval
