"""Limits in force on a lane: declared by batches, obeyed by all, renewed, withdrawn, expired."""

from dataclasses import dataclass, field
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from executor.lanes.contract import (
    AcquireRequest,
    BlockedBy,
    CallOutcome,
    Grant,
    LaneLimit,
    LanePolicy,
    Settlement,
)
from executor.lanes.gcra import BURST
from executor.lanes.lane import process
from executor.lanes.limits import LIMIT_LEASE
from executor.lanes.state import LaneState
from executor.lanes.views import view
from tests.unit.executor.lanes.simulated_fleet import START

SLOW = LaneLimit("a limits", rpm=60.0)
FAST = LaneLimit("b limits", rpm=600.0)


@dataclass
class OneLane:
    """A lane, and the requests of executors at it."""

    state: LaneState = field(default_factory=LaneState)
    now: float = START
    held: int = 0

    def asks(
        self, wanted: int, *limits: LaneLimit, withdrawn: tuple[str, ...] = (), **fields: object
    ) -> Grant:
        ask = AcquireRequest("lane", "e", self.held, wanted, limits=limits, withdrawn=withdrawn, **fields)  # type: ignore[arg-type]
        self.state, grant = process(self.state, self.now, ask)
        self.held += grant.granted
        return grant

    def settles(self, *settlements: Settlement) -> None:
        self.held -= len(settlements)
        self.asks(0, settlements=settlements)

    def later(self, seconds: float) -> "OneLane":
        self.now += seconds
        return self

    def calls_in(self, seconds: float, *limits: LaneLimit) -> int:
        """Request as much as there is, twenty times a second, and let every call end at once."""
        calls = 0
        for _ in range(round(seconds * 20)):
            grant = self.later(0.05).asks(50, *limits)
            calls += grant.granted
            self.settles(*[Settlement(CallOutcome.OK)] * grant.granted)
        return calls


def test_the_strictest_limit_binds_every_batch_on_the_lane():
    """A batch without a limit, and one with a looser limit, are bound by that of a third."""
    lane = OneLane()
    lane.asks(0, SLOW)
    assert lane.calls_in(30) in (29, 30, 31)
    assert lane.calls_in(10, FAST) in (9, 10, 11)


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        (LaneLimit("a limits", max_concurrency=2), BlockedBy.CONCURRENCY),
        (LaneLimit("a limits", gap=5.0), BlockedBy.GAP),
        (LaneLimit("a limits", tpm=60.0), BlockedBy.TOKENS),
    ],
)
def test_every_kind_of_limit_binds_a_batch_without_one(limit, why):
    """Calls in flight of all batches count, tokens of all, and the gap is between calls of any two."""
    lane = OneLane()
    lane.asks(0, limit)
    lane.later(5)
    assert lane.asks(10, estimate=100.0).blocked_by is why
    assert lane.held <= 2


def test_calls_in_flight_of_other_batches_count_and_a_stricter_limit_waits_for_them():
    """Eight are in flight when a limit of two arrives: none starts until seven of them have ended."""
    lane = OneLane()
    assert lane.asks(8).granted == 8
    strict = LaneLimit("a limits", max_concurrency=2)
    assert lane.asks(1, strict).granted == 0
    lane.settles(*[Settlement(CallOutcome.OK)] * 6)
    assert lane.asks(1).granted == 0
    lane.settles(Settlement(CallOutcome.OK))
    assert lane.asks(5).granted == 1


def test_a_limit_expires_a_minute_after_its_last_renewal():
    """All executors of its batch may be gone."""
    lane = OneLane()
    lane.asks(0, SLOW)
    lane.later(30).asks(0, SLOW)
    lane.later(LIMIT_LEASE - 1).asks(0)
    assert view("lane", lane.state, lane.now).limits == (SLOW,)
    lane.later(1).asks(0)
    assert view("lane", lane.state, lane.now).limits == ()
    assert lane.asks(8).granted == 8


def test_a_withdrawn_limit_no_longer_binds_and_leaves_no_long_wait():
    """One call an hour, ten minutes between two: the next batch does not wait for what is left of that."""
    lane = OneLane()
    lane.later(3).asks(0, LaneLimit("a limits", rpm=1 / 60, gap=600.0))
    assert lane.later(3).asks(1).granted == 1
    assert lane.later(1).asks(1).granted == 0
    assert lane.asks(0, withdrawn=("a limits",)).granted == 0
    assert lane.asks(1, FAST).granted == 0
    assert lane.later(2.1).asks(1).granted == 1


def test_a_looser_limit_starts_without_a_burst():
    """What was not used under the stricter limit is not saved up."""
    lane = OneLane()
    lane.asks(0, SLOW, FAST)
    lane.later(30)
    lane.asks(0, FAST, withdrawn=(SLOW.origin,))
    assert lane.asks(100).granted <= 600 / 60 * BURST + 1


def test_permits_from_before_a_stricter_limit_give_nothing_back():
    """They cost a tenth of what they would now; the lane has constant demand."""
    lane, unbound = OneLane(), LanePolicy(is_adaptive=False)
    for limit, steps in ((LaneLimit("b limits", rpm=6_000.0), 10), (LaneLimit("a limits", rpm=600.0), 20)):
        for _ in range(steps):
            lane.later(0.05).asks(1_000, limit, policy=unbound)
    lane.settles(*[Settlement(CallOutcome.UNUSED, age=1.2)] * 5)
    assert lane.asks(10, policy=unbound).granted == 0


def test_the_view_names_the_origin_of_each_limit():
    """It has every limit in force, in order, with its kind."""
    lane = OneLane()
    limits = (LaneLimit("b targets.x", tpm=5.0, max_concurrency=3), LaneLimit("a limits", rpm=7.5, gap=0.5))
    lane.asks(1, *limits)
    assert view("lane", lane.state, lane.now).limits == limits[::-1]
    assert view("lane", lane.state, lane.now + LIMIT_LEASE).limits == ()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), rpm=st.sampled_from([30.0, 300.0, 3_000.0]))
def test_from_its_first_moment_a_stricter_limit_holds_in_every_window(seed, rpm):
    """Looser limits come and go around it, permits come back unused, batches without limits ask, too."""
    random, lane = Random(seed), OneLane()
    strict, starts = LaneLimit("strict limits", rpm=rpm), list[float]()
    begins = random.randint(0, 60)
    for step in range(200):
        lane.later(random.choice([0.0, 0.004, 0.03, 0.1, 0.4, 3.0]))
        others = [LaneLimit(f"{name} limits", rpm=rpm * random.choice([1, 2, 50])) for name in "ab"]
        declared = [*random.sample(others, random.randint(0, 2)), *([strict] if step >= begins else [])]
        unused = random.randint(0, lane.held) if random.random() < 0.4 else 0
        lane.held -= unused
        back = tuple(
            Settlement(CallOutcome.UNUSED, age=random.choice([0.0, 0.5, 3.0])) for _ in range(unused)
        )
        gone = ("a limits", "b limits") if random.random() < 0.2 else ()
        granted = lane.asks(
            random.randint(0, 40), *declared, withdrawn=gone, settlements=back, policy=LanePolicy()
        )
        if step >= begins:
            starts += [lane.now] * granted.granted
        del starts[len(starts) - min(unused, len(starts)) :]
    worst, rate = 0.0, rpm / 60
    least = float("inf")
    for number, at in enumerate(starts):
        least = min(least, number - rate * at)
        worst = max(worst, number - rate * at - least)
    assert worst <= rate * BURST + 1e-3
