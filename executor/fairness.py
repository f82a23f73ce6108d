"""Whose turn it is: stride scheduling over batches, weighted by priority. Pure: `now` is passed in.

Every batch has a pass, which a task moves on by 1 / priority; the batch with the lowest pass is next.
Whoever was away (new, paused, without tasks) comes back at the pass the others have reached, so nobody
saves up turns. A batch that gave less than it was asked for is dry and rests for a moment; its share goes
to the others. Where all are dry, all are asked, those first that were asked longest ago.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

REST = 0.1
"""Seconds for which a dry batch is not asked while others have tasks."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How many tasks to ask of each batch."""

    priorities: Mapping[str, int]
    wanted: Mapping[str, int]
    may_wait: bool
    """Whether nobody is known to have a task, so that waiting for one holds nobody up."""


class Fairness:
    """Remembers who had how much."""

    def __init__(self) -> None:
        self._passes: dict[str, float] = {}
        self._dry_since: dict[str, float] = {}
        self._reached = 0.0

    def plan(self, priorities: Mapping[str, int], free: int, *, now: float) -> Plan:
        """Share free slots out among batches."""
        self._forget_all_but(priorities)
        for batch in priorities:
            self._let_join(batch, now)
        ready = {batch: weight for batch, weight in priorities.items() if batch not in self._dry_since}
        if ready:
            return Plan(priorities, self._shares(ready, free), may_wait=False)
        return Plan(priorities, self._probes(list(priorities), free), may_wait=True)

    def took(self, plan: Plan, taken: Mapping[str, int], *, now: float) -> None:
        """Remember what came of a plan."""
        for batch, asked in plan.wanted.items():
            got = taken.get(batch, 0)
            self._passes[batch] += got / plan.priorities[batch]
            if got < asked:
                self._dry_since[batch] = now
            else:
                self._dry_since.pop(batch, None)
        racing = [turn for batch, turn in self._passes.items() if batch not in self._dry_since]
        self._reached = max(self._reached, min(racing, default=self._reached))

    def _let_join(self, batch: str, now: float) -> None:
        """Put a batch into the race that is new or has rested: once, or it would never win a tie."""
        dry_since = self._dry_since.get(batch)
        if dry_since is not None and now - dry_since >= REST:
            del self._dry_since[batch]
            self._passes[batch] = max(self._passes[batch], self._reached)
        self._passes.setdefault(batch, self._reached)

    def _shares(self, ready: Mapping[str, int], free: int) -> dict[str, int]:
        turns = [(self._passes[batch], batch) for batch in ready]
        heapq.heapify(turns)
        wanted: dict[str, int] = {}
        for _ in range(free):
            turn, batch = turns[0]
            wanted[batch] = wanted.get(batch, 0) + 1
            heapq.heapreplace(turns, (turn + 1 / ready[batch], batch))
        return wanted

    def _probes(self, batches: list[str], free: int) -> dict[str, int]:
        batches.sort(key=lambda batch: (self._dry_since[batch], batch))
        shares = ((batch, len(range(place, free, len(batches)))) for place, batch in enumerate(batches))
        return {batch: share for batch, share in shares if share}

    def _forget_all_but(self, priorities: Mapping[str, int]) -> None:
        for batch in self._passes.keys() - priorities.keys():
            del self._passes[batch]
            self._dry_since.pop(batch, None)
