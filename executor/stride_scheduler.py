"""Whose turn it is: stride scheduling over batches, weighted by priority. Pure: `now` is passed in.

Every batch has a pass, which a task moves on by 1 / priority; the batch with the lowest pass is next.
Whoever was away (new, paused, without tasks) comes back at the pass the others have reached, so nobody
saves up turns; one that a limit held back keeps a few. A batch that gave less than it was asked for is dry
and rests for a moment; its share goes to the others. Where all are dry, all are asked, those first that
were asked longest ago.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

REST = 0.1
"""Seconds for which a dry batch is not asked while others have tasks."""
KEPT_TURNS = 20.0
"""Tasks, at priority 1, by which a batch may be behind: so those who share a limit come to their shares."""


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """In which order to ask batches for tasks."""

    priorities: Mapping[str, int]
    turns: Sequence[str]
    """Whose task is to be taken first, whose second, and so on."""
    may_wait: bool
    """Whether nobody who may be asked is known to have a task, so that waiting for one holds nobody up."""

    @property
    def wanted(self) -> Counter[str]:
        """How many tasks to ask of each batch."""
        return Counter(self.turns)


class StrideScheduler:
    """Remembers who had how much."""

    def __init__(self) -> None:
        self._passes: dict[str, float] = {}
        self._dry_since: dict[str, float] = {}
        self._reached = 0.0

    def plan(
        self, priorities: Mapping[str, int], free: int, *, now: float, shut: Collection[str] = ()
    ) -> TurnPlan:
        """Share free slots out among batches, but for those that a limit holds back."""
        self._forget_all_but(priorities)
        for batch in priorities:
            self._let_join(batch, now)
        self._let_catch_up()
        open_now = {batch: weight for batch, weight in priorities.items() if batch not in shut}
        ready = {batch: weight for batch, weight in open_now.items() if batch not in self._dry_since}
        if ready:
            return TurnPlan(priorities, self._shares(ready, free), may_wait=False)
        return TurnPlan(priorities, self._probes(list(open_now), free), may_wait=True)

    def took(self, plan: TurnPlan, taken: Mapping[str, int], *, dry: Collection[str], now: float) -> None:
        """Remember what came of a plan, and who had less than was asked for."""
        for batch in plan.wanted:
            self._passes[batch] += taken.get(batch, 0) / plan.priorities[batch]
            if taken.get(batch):
                self._dry_since.pop(batch, None)
        self._dry_since.update(dict.fromkeys(dry, now))
        racing = [self._passes[batch] for batch in plan.wanted if batch not in self._dry_since]
        self._reached = max(self._reached, min(racing, default=self._reached))

    def _let_join(self, batch: str, now: float) -> None:
        """Put a batch into the race that is new or has rested: once, or it would never win a tie."""
        dry_since = self._dry_since.get(batch)
        if dry_since is not None and now - dry_since >= REST:
            del self._dry_since[batch]
            self._passes[batch] = max(self._passes[batch], self._reached)
        self._passes.setdefault(batch, self._reached)

    def _let_catch_up(self) -> None:
        """Bring nearer who fell far behind, all by the same: who shares a limit must keep its share."""
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
        batches.sort(key=lambda batch: (self._dry_since[batch], batch))
        return list(islice(cycle(batches), free))

    def _forget_all_but(self, priorities: Mapping[str, int]) -> None:
        for batch in self._passes.keys() - priorities.keys():
            del self._passes[batch]
            self._dry_since.pop(batch, None)
