"""Figures of the bench of lanes, from what the simulator counted."""

import pytest

from bench.lanes_metrics import SimulatorCounts, busiest, goodput, lost, read_stats
from scoreline.provider_sim.stats import CallStats


def test_reads_what_the_simulator_writes() -> None:
    """The names are those of `/_sim/stats`, checked against the simulator's own writing."""
    stats = CallStats()
    stats.calls["/v1/messages", "200"] = 7
    stats.calls["/v1/messages", "429"] = 2
    stats.calls["any", "outage"] = 5
    stats.admitted.update({3: 6, 4: 2})
    stats.answer(1, 30, 12)
    stats.began()
    seen = read_stats(stats.listed(), at=1.5)
    assert seen == SimulatorCounts(1.5, 7, 2, 8, 42, {3: 6, 4: 2}, 1)
    assert seen.came == 10


def test_reads_a_simulator_that_no_one_has_called() -> None:
    assert read_stats(CallStats().listed(), at=0.0) == SimulatorCounts(0.0)


def test_goodput_is_what_was_answered_of_the_limits_worth() -> None:
    """Refused calls are a share of those that came, not of those that were answered."""
    found = goodput(
        SimulatorCounts(10.0), SimulatorCounts(40.0, ok=45, too_many=5, admitted=45, tokens=900), rpm=100
    )
    assert found["goodput_ratio"] == pytest.approx(0.9)
    assert found["share_429"] == pytest.approx(0.1)


def test_goodput_under_a_limit_of_tokens_counts_tokens() -> None:
    found = goodput(
        SimulatorCounts(0.0, tokens=100),
        SimulatorCounts(60.0, ok=10, admitted=10, tokens=900),
        rpm=100,
        tpm=1_000,
    )
    assert found["goodput_ratio"] == pytest.approx(0.8)


def test_goodput_of_no_one_is_nothing() -> None:
    found = goodput(SimulatorCounts(0.0), SimulatorCounts(60.0), rpm=100)
    assert (found["goodput_ratio"], found["share_429"]) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("since", "seconds", "expected"),
    [(0, 1, 9), (3, 1, 4), (0, 2, 10), (4, 2, 4), (4, 3, 7), (9, 1, 0)],
    ids=["all", "later only", "two at a time", "a gap counts", "begins before", "after the end"],
)
def test_the_fullest_stretch_ends_after_a_moment(since: int, seconds: int, expected: int) -> None:
    """Seconds without calls are seconds, too."""
    assert busiest({0: 1, 1: 9, 2: 1, 3: 3, 5: 4}, since=since, seconds=seconds) == expected


def test_no_one_loses_less_than_nothing() -> None:
    assert lost(0.8, 0.6) == pytest.approx(0.25)
    assert lost(0.8, 0.9) == 0.0
    assert lost(0.0, 0.9) == 0.0
