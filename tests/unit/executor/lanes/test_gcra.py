"""The bound of GCRA: in any T seconds at most rpm / 60 * (T + 0.25) + 1 calls start."""

from dataclasses import dataclass, field
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from executor.lanes.contract import AcquireRequest, CallOutcome, LanePolicy, Settlement
from executor.lanes.gcra import BURST
from executor.lanes.lane import grant_permits, settle
from executor.lanes.state import LaneState
from providers.limits import Headroom, RateLimits
from tests.unit.executor.lanes.simulated_fleet import START

EXECUTORS = ("a", "b", "c")


@dataclass
class Story:
    """Several executors on one lane, whose state is lost now and then."""

    random: Random
    policy: LanePolicy
    losses: bool = True
    wasteful: float = 0.3
    now: float = START
    state: LaneState = field(default_factory=LaneState)
    starts: list[float] = field(default_factory=list)
    unsettled: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in EXECUTORS})
    lost: list[float] = field(default_factory=list)

    def goes_on(self, steps: int) -> None:
        for _ in range(steps):
            self.now = round(self.now + self.random.choice([0.0, 0.004, 0.03, 0.1, 0.4, 3.0]), 3)
            if self.losses and self.random.random() < 0.05:
                self.state = LaneState()
                self.lost.append(self.now)
            self._ask(self.random.choice(EXECUTORS))

    def _ask(self, executor: str) -> None:
        held = self.unsettled[executor]
        settled = [granted_at for granted_at in held if self.random.random() < 0.4]
        for granted_at in settled:
            held.remove(granted_at)
        settlements = tuple(self._settlement(granted_at) for granted_at in settled)
        for each in settlements:
            self.state = settle(self.state, self.now, self.policy, each)
        ask = AcquireRequest(
            "lane", executor, len(held), self.random.randint(0, 60), 100.0, self.policy, settlements
        )
        self.state, grant = grant_permits(self.state, self.now, ask)
        held += [self.now] * grant.granted
        self.starts += [self.now] * grant.granted

    def _settlement(self, granted_at: float) -> Settlement:
        age = self.now - granted_at
        if self.random.random() < self.wasteful:
            self.starts.remove(granted_at)
            return Settlement(CallOutcome.UNUSED, age=age)
        others = (
            CallOutcome.OK,
            CallOutcome.OK,
            CallOutcome.REFUSED,
            CallOutcome.ABANDONED,
            CallOutcome.FAILED,
        )
        outcome = self.random.choice((*others, CallOutcome.RATE_LIMITED) if age > 2 else others)
        limits = RateLimits(
            Headroom(self.random.choice([None, 30.0, 1e6]), self.random.choice([None, 0, 9e5]))
        )
        return Settlement(outcome, age=age, limits=limits if self.random.random() < 0.05 else None)

    def most_over(self) -> float:
        """Return by how many calls the worst window exceeds the bound."""
        per_second = (self.policy.rpm or 0) / 60
        worst, self.starts = float("-inf"), sorted(self.starts)
        for first, begin in enumerate(self.starts):
            for last in range(first, len(self.starts)):
                allowed = per_second * (self.starts[last] - begin + BURST) + 1
                worst = max(worst, last - first + 1 - allowed)
        return worst


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), rpm=st.sampled_from([30.0, 60.0, 500.0, 3_000.0]))
def test_no_window_has_more_calls_than_the_bound(seed, rpm):
    """Permits come back unused, calls fail, headers hold any value, and the lane is lost at any time."""
    story = Story(Random(seed), LanePolicy(rpm=rpm, breaker_failures=20, breaker_seconds=1.0))
    story.goes_on(100)
    assert story.most_over() <= 1e-3


@pytest.mark.parametrize("rpm", [3.0, 10.0])
def test_of_a_very_slow_lane_each_loss_may_cost_one_call_more(rpm):
    """Otherwise every executor would wait many seconds before the lane's first call."""
    story = Story(Random(1), LanePolicy(rpm=rpm))
    story.goes_on(400)
    assert story.most_over() <= len(story.lost)


def test_the_bound_is_met_and_not_only_kept():
    """A lane with constant demand uses its whole limit."""
    story = Story(Random(2), LanePolicy(rpm=600.0, breaker_failures=10_000), losses=False, wasteful=0.0)
    for _ in range(600):
        story.now += 0.1
        story.state, grant = grant_permits(
            story.state, story.now, AcquireRequest("lane", "a", 0, 3, policy=story.policy)
        )
        story.starts += [story.now] * grant.granted
    assert len(story.starts) >= 599


def test_what_comes_back_at_once_is_granted_again():
    """An unused permit costs other executors nothing, if none was granted since."""
    policy = LanePolicy(rpm=60.0)
    state, _ = grant_permits(LaneState(), START, AcquireRequest("lane", "a", 0, 1, policy=policy))
    state, grant = grant_permits(state, START + 1, AcquireRequest("lane", "a", 0, 1, policy=policy))
    assert grant.granted == 1
    state = settle(state, START + 1.5, policy, Settlement(CallOutcome.UNUSED, age=0.5))
    _, grant = grant_permits(state, START + 1.5, AcquireRequest("lane", "b", 0, 1, policy=policy))
    assert grant.granted == 1
