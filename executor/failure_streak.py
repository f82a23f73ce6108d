"""Fail fast on the executor's side: a bound on failures until the coordinator has paused the batch. Pure.

The coordinator counts failures that are on record, so it is late by storage's lag and one of its rounds.
An executor that has seen `fail_fast_after` evaluations of a batch fail in a row takes none of it for a
moment, in which the coordinator decides. Should it let the batch go on, the executor counts anew.
"""

from collections.abc import Collection

from eventlog import payloads as p
from executor.outcome import Closing

HOLD = 2.0
"""Seconds for which no task of the batch is taken."""


class FailureStreaks:
    """Counts permanent failures in a row, each at the first attempt, by batch."""

    def __init__(self) -> None:
        self._failed: dict[str, int] = {}
        self._held_until: dict[str, float] = {}

    def observe(
        self, batch_id: str, closing: Closing | None, *, attempt: int, limit: int, now: float
    ) -> None:
        """Take in how an attempt ended; `limit` failures in a row hold the batch, 0 never does."""
        if closing is None or isinstance(closing, p.Retrying):
            return
        if not limit or attempt > 1 or not isinstance(closing, p.Failed):
            self._failed.pop(batch_id, None)
            return
        failed = self._failed[batch_id] = self._failed.get(batch_id, 0) + 1
        if failed >= limit:
            del self._failed[batch_id]
            self._held_until[batch_id] = now + HOLD

    def held(self, now: float) -> set[str]:
        """Return the batches to take nothing of."""
        return {batch_id for batch_id, until in self._held_until.items() if until > now}

    def forget_all_but(self, batch_ids: Collection[str]) -> None:
        """Forget batches that do not run: one that is resumed is counted anew."""
        for memory in (self._failed, self._held_until):
            for gone in memory.keys() - set(batch_ids):
                del memory[gone]
