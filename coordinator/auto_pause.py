"""Automatic pause of a batch: budget spent, fail fast, or an endpoint that has never answered."""

from collections.abc import Callable, Container
from time import monotonic

from coordinator.attempt_opening import spec_of
from coordinator.budget import READ_FACTOR, Streak, overspent, permanent_streak
from coordinator.budget_keeper import BudgetKeeper
from coordinator.first_contact import FirstContactCheck
from projections.ledger.batch import Batch
from projections.ledger.contract import Ledger


class AutoPause:
    """Checks the counters of running batches; reads failures only where the failure count alone has grown.

    The failure streak is kept in memory: after a change of leader, and after a resume, it starts at zero.
    """

    def __init__(
        self, ledger: Ledger, keeper: BudgetKeeper | None = None, *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._ledger = ledger
        self._keeper = keeper
        self._streaks: dict[str, Streak] = {}
        self._contacts = FirstContactCheck(ledger, clock)

    async def reason_to_pause(self, batch: Batch) -> str | None:
        """Return the reason to pause a running batch, if any; a batch that has ended is not paused."""
        if not batch.progress.pending:
            return None
        return await self._exhausted(batch) or await self._contacts.reason_to_pause(batch)

    async def _exhausted(self, batch: Batch) -> str | None:
        return await self._overspent(batch) or await self._streak_reason(batch)

    async def _overspent(self, batch: Batch) -> str | None:
        return await self._keeper.reason_to_pause(batch) if self._keeper else overspent(batch.budget)

    async def _streak_reason(self, batch: Batch) -> str | None:
        before = self._streaks.get(batch.batch_id) or Streak.begin(batch.progress)
        streak = before.go_on(batch.progress)
        reason = await self._reason_in(batch, streak) if streak.failed > before.failed else None
        if reason is None:  # otherwise the streak is reported again until the batch is paused
            self._streaks[batch.batch_id] = streak
        return reason

    async def _reason_in(self, batch: Batch, streak: Streak) -> str | None:
        after = spec_of(batch).fail_fast_after
        if not after or streak.length < after:
            return None
        limit = min(streak.length, READ_FACTOR * after)
        return permanent_streak(await self._ledger.failures(batch.batch_id, limit=limit), after=after)

    def release(self, batch_id: str) -> None:
        """Reset the state of a batch that was paused."""
        self._streaks.pop(batch_id, None)
        self._contacts.release(batch_id)

    def retain(self, batch_ids: Container[str]) -> None:
        """Drop the state of batches that are not running."""
        self._streaks = {key: streak for key, streak in self._streaks.items() if key in batch_ids}
        self._contacts.retain(batch_ids)
