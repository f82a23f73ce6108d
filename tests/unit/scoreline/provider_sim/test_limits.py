"""The simulator's limits, in virtual time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoreline.provider_sim.limits import Bucket, CallWeight, Shortage, SimulatedLane, SimulatedLanes
from scoreline.provider_sim.settings import SimulatedRateLimits

gaps = st.lists(st.floats(0, 5), min_size=1, max_size=200)
costs = st.integers(1, 500)


def flood(lane: SimulatedLane, seconds: int, *, every: float, cost: CallWeight) -> int:
    """Send requests repeatedly, and count those admitted."""
    moments = (i * every for i in range(round(seconds / every)))
    return sum(lane.admit(cost, now=now) is None for now in moments)


@given(gaps, st.lists(costs, min_size=200, max_size=200), st.floats(1, 200))
def test_no_window_admits_more_than_its_share(steps, weights, rate):
    """The bound is a full bucket, the refill since, and the debt of one call at most."""
    bucket, now, taken = Bucket(rate, rate, now=0.0), 0.0, list[tuple[float, int]]()
    for step, cost in zip(steps, weights, strict=False):
        now += step
        if bucket.wait(cost, now=now) == 0:
            bucket.take(cost, now=now)
            taken.append((now, cost))
    for first in range(len(taken)):
        window = taken[first:]
        spent = sum(cost for _, cost in window)
        largest = max(cost for _, cost in window)
        assert spent <= rate + rate * (window[-1][0] - window[0][0]) + largest + 1e-6


@given(gaps, costs, st.floats(1, 200))
def test_a_client_that_honours_retry_after_is_admitted(steps, cost, rate):
    """The advertised wait is enough, and a little less is not."""
    bucket, now = Bucket(rate, rate, now=0.0), 0.0
    for step in steps:
        now += step
        wait = bucket.wait(cost, now=now)
        if wait > 1e-3:
            assert bucket.wait(cost, now=now + wait * 0.99) > 0
        now += wait
        assert bucket.wait(cost, now=now + 1e-6) == 0
        bucket.take(cost, now=now)


def test_a_clock_that_goes_back_refills_nothing():
    """No interval is counted twice."""
    bucket = Bucket(1, 1, now=100.0)
    bucket.take(1, now=100.0)
    assert bucket.level(50.0) == 0
    bucket.take(0, now=50.0)
    assert bucket.level(100.5) == 0.5


def test_three_thousand_a_minute_are_three_thousand_a_minute():
    """At ten times the demand, the limit and one second's burst are admitted, no more and no less."""
    lane = SimulatedLane(SimulatedRateLimits(rpm=3_000), now=0.0)
    assert flood(lane, 60, every=0.002, cost=CallWeight(10, 10)) == pytest.approx(3_050, abs=1)


def test_the_token_limit_applies_before_the_request_limit():
    """The tightest bucket decides, and the refusal names it."""
    lane = SimulatedLane(SimulatedRateLimits(rpm=3_000, tpm=60_000), now=0.0)
    assert flood(lane, 60, every=0.01, cost=CallWeight(60, 40)) == pytest.approx(610, abs=1)
    refused = lane.admit(CallWeight(60, 40), now=59.99)
    assert isinstance(refused, Shortage)
    assert refused.kind == "tokens"


def test_a_refused_call_costs_nothing():
    """A call refused by one bucket is not charged to another."""
    lane = SimulatedLane(SimulatedRateLimits(rpm=60, input_tpm=60), now=0.0)
    assert lane.admit(CallWeight(1, 0), now=0.0) is None
    assert lane.admit(CallWeight(1, 0), now=0.5) == Shortage("requests", 0.5)
    assert lane.statuses(0.5)["input-tokens"].remaining == 0
    assert lane.admit(CallWeight(1, 0), now=1.0) is None


def test_a_call_larger_than_the_bucket_is_served_and_leaves_a_debt():
    """It waits for a full bucket, then its debt delays other calls."""
    lane = SimulatedLane(SimulatedRateLimits(tpm=6_000), now=0.0)
    assert lane.admit(CallWeight(500, 0), now=0.0) is None
    assert lane.statuses(0.0)["tokens"].remaining == 0
    assert lane.admit(CallWeight(100, 0), now=4.9) is not None
    assert lane.admit(CallWeight(100, 0), now=5.0) is None


def test_burst_is_the_size_of_the_bucket():
    """Two seconds of 600 a minute are twenty."""
    lane = SimulatedLane(SimulatedRateLimits(rpm=600, burst_seconds=2), now=0.0)
    assert [lane.admit(CallWeight(1, 1), now=0.0) for _ in range(21)].count(None) == 20
    assert lane.statuses(0.0)["requests"].reset == pytest.approx(2.0)


def test_keys_have_separate_limits_and_models_share_one_by_default():
    """A limit belongs to a key, or to a model of a key."""
    lanes, shared, apart = (
        SimulatedLanes(),
        SimulatedRateLimits(rpm=60),
        SimulatedRateLimits(rpm=60, per_model=True),
    )
    for limits, same in ((shared, True), (apart, False)):
        mine = lanes.lane(limits, key="a", model="x", now=0.0)
        assert mine is not lanes.lane(limits, key="b", model="x", now=0.0)
        assert (mine is lanes.lane(limits, key="a", model="y", now=0.0)) == same
