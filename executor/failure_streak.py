"""Fail fast on the executor's side: a bound on failures until the coordinator has paused the batch. Pure.

The coordinator counts stored failures, so it lags by storage and one of its cycles. After `fail_fast_after`
consecutive failures of a batch an executor fetches none of its tasks for a moment, in which the coordinator
decides. If it lets the batch run, the executor starts counting again.
"""

from collections.abc import Collection

from eventlog import payloads as p
from executor.outcome import Closing

HOLD = 2.0
"""Seconds for which no task of the batch is fetched."""


class FailureStreaks:
    """Counts consecutive permanent failures, each at the first attempt, by batch."""

    def __init__(self) -> None:
        self._failed: dict[str, int] = {}
        self._held_until: dict[str, float] = {}

    def observe(
        self, batch_id: str, closing: Closing | None, *, attempt: int, limit: int, now: float
    ) -> None:
        """Count an attempt that ended; `limit` consecutive failures hold the batch, 0 never does."""
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
        """Return the batches to fetch nothing from."""
        return {batch_id for batch_id, until in self._held_until.items() if until > now}

    def forget_all_but(self, batch_ids: Collection[str]) -> None:
        """Forget batches that do not run: after a resume the count starts at 0."""
        for memory in (self._failed, self._held_until):
            for gone in memory.keys() - set(batch_ids):
                del memory[gone]
