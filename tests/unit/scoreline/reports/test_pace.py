"""The rate of a batch over a sliding window of samples."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from scoreline.reports.pace import Pace, average, remaining
from tests.builders import START


def observed(*moments: tuple[float, int], window: float = 20.0) -> Pace:
    pace = Pace(timedelta(seconds=window))
    for at, done in moments:
        pace.observe(done, START + timedelta(seconds=at))
    return pace


def test_there_is_no_rate_before_two_samples() -> None:
    """Fewer than two samples, or two of the same time, give no rate and no estimate."""
    assert observed().rate is None
    assert observed((0, 5)).rate is None
    assert observed((0, 5), (0, 9)).rate is None
    assert observed((0, 5)).eta(3) is None


def test_rate_is_that_of_the_window_and_not_of_the_whole() -> None:
    """A slow start outside the window does not count: 1 per second for 100 s, then 10 per second."""
    pace = observed(*((at, at) for at in range(101)), *((100 + at, 100 + 10 * at) for at in range(1, 41)))
    assert pace.rate == 10.0
    assert pace.eta(100) == timedelta(seconds=10)


def test_a_standstill_has_no_estimate() -> None:
    """The rate is 0 and there is no estimate, unless nothing is pending."""
    pace = observed((0, 5), (10, 5), (40, 5))
    assert (pace.rate, pace.eta(1), pace.eta(0)) == (0.0, None, timedelta())


def test_samples_further_apart_than_the_window_give_a_rate() -> None:
    """The rate is measured from the last sample before the window."""
    assert observed((0, 0), (60, 120)).rate == 2.0
    assert observed((0, 0), (60, 120), (120, 120)).rate == 0.0


def test_a_falling_count_starts_a_new_window() -> None:
    """Neither a falling count nor a clock that went back gives a negative rate."""
    assert observed((0, 10), (1, 4)).rate is None
    assert observed((0, 10), (1, 4), (2, 6)).rate == 2.0
    assert observed((5, 1), (3, 2), (4, 3)).rate == 1.0


@given(st.lists(st.tuples(st.floats(0, 1e6), st.integers(0, 10**7)), max_size=50), st.integers(0, 10**7))
def test_the_rate_is_never_negative(moments: list[tuple[float, int]], left: int) -> None:
    """Rate and estimate are None or not negative for samples in any order."""
    pace = observed(*moments)
    assert pace.rate is None or pace.rate >= 0
    eta = pace.eta(left)
    assert eta is None or eta >= timedelta()


def test_average_needs_time_to_have_passed() -> None:
    """There is no average without elapsed time, and no estimate beyond the longest."""
    assert average(10, timedelta()) is None
    assert average(10, timedelta(seconds=4)) == 2.5
    assert remaining(10**9, 0.001) is None
