"""A lane and a clock for tests of its rules."""

from executor.lanes.contract import AcquireRequest, CallOutcome, Grant, LanePolicy, Settlement
from executor.lanes.lane import grant_permits, settle
from executor.lanes.state import LaneState
from executor.lanes.views import view
from tests.unit.executor.lanes.simulated_fleet import START

FREE = LanePolicy()


class Lane:
    """One lane, with requests and settlements as method calls."""

    def __init__(self, policy: LanePolicy = FREE) -> None:
        self.policy, self.now, self.state = policy, START, LaneState()

    def later(self, seconds: float) -> "Lane":
        self.now += seconds
        return self

    def asks(self, wanted: int, *, held: int = 0, who: str = "a", estimate: float = 100.0) -> Grant:
        ask = AcquireRequest("lane", who, held, wanted, estimate, self.policy)
        self.state, grant = grant_permits(self.state, self.now, ask)
        return grant

    def settles(self, outcome: CallOutcome, times: int = 1, **fields) -> "Lane":
        for _ in range(times):
            self.state = settle(self.state, self.now, self.policy, Settlement(outcome, **fields))
        return self

    @property
    def view(self):
        return view("lane", self.state, self.now)


def broken(policy: LanePolicy = FREE) -> Lane:
    lane = Lane(policy)
    lane.asks(8)
    return lane.later(1).settles(CallOutcome.FAILED, 5, age=1.0)
