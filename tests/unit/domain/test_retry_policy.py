"""The retry policy: delays and the faults that use up a retry."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.retry_policy import LONGEST_BACKOFF, UNCHARGED_KINDS, bounded, charged_kind, full_jitter


@given(st.integers(1, 10**6), st.floats(0, 1))
def test_a_backoff_stays_within_its_bounds(attempt, jitter):
    """From nothing to the bound of its attempt, and never beyond a minute."""
    bound = min(timedelta(seconds=2.0 ** min(attempt - 1, 20)), LONGEST_BACKOFF)
    assert timedelta(0) <= full_jitter(attempt, jitter) <= bound


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (100, 60)])
def test_the_bound_of_a_backoff_doubles_up_to_a_minute(attempt, seconds):
    """The whole bound, with a jitter of 1."""
    assert full_jitter(attempt, 1.0) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("asked", "waited"),
    [
        (timedelta(seconds=9), timedelta(seconds=9)),
        (timedelta(seconds=-1), timedelta(0)),
        (timedelta(days=400), timedelta(days=1)),
    ],
)
def test_retry_after_is_at_most_a_day(asked, waited):
    """A date in the past is no delay, and one far away does not hold an evaluation for ever."""
    assert bounded(asked) == waited


@pytest.mark.parametrize("kind", sorted(UNCHARGED_KINDS))
def test_a_charged_fault_has_no_uncharged_kind(kind):
    """A target can't name its fault so that the retry is free."""
    assert charged_kind(kind) == "transient"
    assert charged_kind("network") == "network"
