"""Lanes in memory: one process, or one executor's share."""

from collections.abc import Callable, Sequence

from executor.lanes.arithmetic import answer
from executor.lanes.contract import Ask, Grant, LaneView
from executor.lanes.state import LaneState
from executor.lanes.views import view


class MemoryLanes:
    """`Lanes` of this process; `now` says Unix seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._states: dict[str, LaneState] = {}

    async def ask(self, asks: Sequence[Ask]) -> list[Grant]:
        """Settle, then grant."""
        return [self._asked(each) for each in asks]

    def _asked(self, ask: Ask) -> Grant:
        now, state = self._now(), self._states.get(ask.lane, LaneState())
        self._states[ask.lane], grant = answer(state, now, ask)
        return grant

    async def views(self, lanes: Sequence[str]) -> list[LaneView]:
        """Say how lanes stand."""
        now = self._now()
        return [view(lane, self._states.get(lane, LaneState()), now) for lane in lanes]
