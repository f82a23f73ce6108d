"""Lanes in memory: of one process, or one executor's share."""

from collections.abc import Callable, Sequence

from executor.lanes.contract import AcquireRequest, Grant, LaneView
from executor.lanes.lane import process
from executor.lanes.state import LaneState
from executor.lanes.views import view


class MemoryLanes:
    """`Lanes` of this process; `now` returns Unix seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._states: dict[str, LaneState] = {}

    async def acquire(self, requests: Sequence[AcquireRequest]) -> list[Grant]:
        """Settle, then grant."""
        return [self._process(each) for each in requests]

    def _process(self, request: AcquireRequest) -> Grant:
        now, state = self._now(), self._states.get(request.lane, LaneState())
        self._states[request.lane], grant = process(state, now, request)
        return grant

    async def views(self, lanes: Sequence[str]) -> list[LaneView]:
        """Return the state of lanes."""
        now = self._now()
        return [view(lane, self._states.get(lane, LaneState()), now) for lane in lanes]
