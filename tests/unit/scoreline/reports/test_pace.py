"""How fast a batch goes: from what was seen of it, over the last seconds."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from scoreline.reports.pace import Pace, average, remaining
from tests.builders import START


def seen(*moments: tuple[float, int], window: float = 20.0) -> Pace:
    pace = Pace(timedelta(seconds=window))
    for at, done in moments:
        pace.observe(done, START + timedelta(seconds=at))
    return pace


def test_nothing_is_known_before_two_moments() -> None:
    """No rate, no end, and no division by zero where both are the same moment."""
    assert seen().rate is None
    assert seen((0, 5)).rate is None
    assert seen((0, 5), (0, 9)).rate is None
    assert seen((0, 5)).eta(3) is None


def test_rate_is_that_of_the_window_and_not_of_the_whole() -> None:
    """A slow beginning is forgotten: 1 a second for 100 s, then 10 a second."""
    pace = seen(*((at, at) for at in range(101)), *((100 + at, 100 + 10 * at) for at in range(1, 41)))
    assert pace.rate == 10.0
    assert pace.eta(100) == timedelta(seconds=10)


def test_standstill_has_no_end_in_sight() -> None:
    """Rate nought, and no time to go; unless nothing is left."""
    pace = seen((0, 5), (10, 5), (40, 5))
    assert (pace.rate, pace.eta(1), pace.eta(0)) == (0.0, None, timedelta())


def test_seldom_looks_still_give_a_rate() -> None:
    """Looks further apart than the window are measured from the last one outside it."""
    assert seen((0, 0), (60, 120)).rate == 2.0
    assert seen((0, 0), (60, 120), (120, 120)).rate == 0.0


def test_reopened_evaluations_start_the_measure_anew() -> None:
    """A count that falls is no negative rate; nor is a clock that went back."""
    assert seen((0, 10), (1, 4)).rate is None
    assert seen((0, 10), (1, 4), (2, 6)).rate == 2.0
    assert seen((5, 1), (3, 2), (4, 3)).rate == 1.0


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 10**7)), max_size=50), st.integers(0, 10**7))
def test_whatever_was_seen_the_rate_is_no_nonsense(moments: list[tuple[float, int]], left: int) -> None:
    """Never negative, never an error, in any order of moments and counts."""
    pace = seen(*moments)
    assert pace.rate is None or pace.rate >= 0
    eta = pace.eta(left)
    assert eta is None or eta >= timedelta()


def test_average_needs_time_to_have_passed() -> None:
    """And far too long is no estimate."""
    assert average(10, timedelta()) is None
    assert average(10, timedelta(seconds=4)) == 2.5
    assert remaining(10**9, 0.001) is None
