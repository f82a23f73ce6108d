"""Fair sharing among batches: stride scheduling, weighted by priority. Pure: `now` is passed in.

Every batch has a pass, which a task advances by 1 / priority; the batch with the lowest pass is next. A
batch that joins or rejoins (new, paused, without tasks) starts at the pass that the others have reached, so
none saves up turns; one that a limit has closed keeps a few. A batch that delivered less than was requested
is empty and not polled for a moment; its share goes to the others. Where all are empty, all are polled, the
one polled longest ago first.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

EMPTY_PAUSE = 0.1
"""Seconds for which an empty batch is not polled while others have tasks."""
KEPT_TURNS = 20.0
"""Tasks, at priority 1, by which a batch may be behind: so those that share a limit reach their shares."""


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """The order in which to fetch from batches."""

    priorities: Mapping[str, int]
    turns: Sequence[str]
    """The batch of the first task, of the second, and so on."""
    may_wait: bool
    """Whether no open batch is known to have a task, so that blocking for one delays no other."""

    @property
    def wanted(self) -> Counter[str]:
        """How many tasks to fetch from each batch."""
        return Counter(self.turns)


class StrideScheduler:
    """The pass of every batch."""

    def __init__(self) -> None:
        self._passes: dict[str, float] = {}
        self._empty_since: dict[str, float] = {}
        self._reached = 0.0

    def plan(
        self, priorities: Mapping[str, int], free: int, *, now: float, closed: Collection[str] = ()
    ) -> TurnPlan:
        """Share free slots among batches, except those that a limit has closed."""
        self._forget_all_but(priorities)
        for batch in priorities:
            self._join(batch, now)
        self._bound_lag()
        open_now = {batch: weight for batch, weight in priorities.items() if batch not in closed}
        ready = {batch: weight for batch, weight in open_now.items() if batch not in self._empty_since}
        if ready:
            return TurnPlan(priorities, self._shares(ready, free), may_wait=False)
        return TurnPlan(priorities, self._probes(list(open_now), free), may_wait=True)

    def record(
        self, plan: TurnPlan, fetched: Mapping[str, int], *, empty: Collection[str], now: float
    ) -> None:
        """Advance the passes by the tasks that a plan fetched, and remember the empty batches."""
        for batch in plan.wanted:
            self._passes[batch] += fetched.get(batch, 0) / plan.priorities[batch]
            if fetched.get(batch):
                self._empty_since.pop(batch, None)
        self._empty_since.update(dict.fromkeys(empty, now))
        racing = [self._passes[batch] for batch in plan.wanted if batch not in self._empty_since]
        self._reached = max(self._reached, min(racing, default=self._reached))

    def _join(self, batch: str, now: float) -> None:
        """Add a batch that is new or was empty: once, or it would never win a tie."""
        empty_since = self._empty_since.get(batch)
        if empty_since is not None and now - empty_since >= EMPTY_PAUSE:
            del self._empty_since[batch]
            self._passes[batch] = max(self._passes[batch], self._reached)
        self._passes.setdefault(batch, self._reached)

    def _bound_lag(self) -> None:
        """Advance batches far behind, all by the same: those that share a limit keep their shares."""
        if min(self._passes.values(), default=self._reached) >= self._reached - KEPT_TURNS:
            return
        nearer = self._reached - KEPT_TURNS / 2
        behind = [batch for batch, turn in self._passes.items() if turn < nearer]
        by = nearer - min(self._passes[batch] for batch in behind)
        for batch in behind:
            self._passes[batch] += by

    def _shares(self, ready: Mapping[str, int], free: int) -> list[str]:
        turns = [(self._passes[batch], batch) for batch in ready]
        heapq.heapify(turns)
        order: list[str] = []
        for _ in range(free):
            turn, batch = turns[0]
            order.append(batch)
            heapq.heapreplace(turns, (turn + 1 / ready[batch], batch))
        return order

    def _probes(self, batches: list[str], free: int) -> list[str]:
        batches.sort(key=lambda batch: (self._empty_since[batch], batch))
        return list(islice(cycle(batches), free))

    def _forget_all_but(self, priorities: Mapping[str, int]) -> None:
        for batch in self._passes.keys() - priorities.keys():
            del self._passes[batch]
            self._empty_since.pop(batch, None)
