"""Keeps budget accounts consistent with Postgres, the authority, and decides when a budget pauses a batch.

A missing account is created: at once for a batch that was never published, otherwise with a recovery period
in which executors declare their reservations and settlements again. Reservations of dead executors become
unrecorded spend, which the ledger stores with the batch.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from time import monotonic
from typing import NamedTuple

from coordinator.budget import overspent
from projections.ledger.batch import Batch
from projections.ledger.contract import Ledger
from taskqueue.budget.contract import (
    NOTHING,
    PROVIDER_BATCH,
    Amount,
    BudgetAccounts,
    BudgetTerms,
    BudgetView,
    HolderReservation,
    NewAccount,
    larger,
    nanodollars,
)
from taskqueue.executor_registry import ExecutorRegistry

logger = logging.getLogger(__name__)

RECOVERY = 5.0
"""Seconds for which a re-created account grants nothing; executors declare their state every second."""
STORED_WITHIN = 10.0
"""Seconds for which a pause waits until every settlement is recorded, so that its figure is final."""


class StorageWait(NamedTuple):
    """A pause that waits for storage: since when these two figures have differed, unchanged.

    Storage that lags catches up; only a difference that persists is unrecorded spend.
    """

    since: float
    spent: Amount
    recorded: Amount


class BudgetKeeper:
    """Publishes budget accounts, and decides from them whether a batch must pause."""

    def __init__(
        self,
        ledger: Ledger,
        accounts: BudgetAccounts,
        executor_registry: ExecutorRegistry,
        *,
        is_settled: Callable[[], bool],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._ledger = ledger
        self._accounts = accounts
        self._executor_registry = executor_registry
        self._is_settled = is_settled
        """Whether heartbeats are reliable: not during the grace period after Redis lost data."""
        self._clock = clock
        self._waits: dict[str, StorageWait] = {}
        self._holding: dict[str, Mapping[str, HolderReservation]] = {}
        """The last known state of each batch's holders, kept in case the account is lost."""

    async def reason_to_pause(self, batch: Batch) -> str | None:
        """Publish an account; return why its batch must pause: no room for a call, and no call active."""
        view = await self.publish(batch)
        if view is None:
            return None
        if view.held:
            self._waits.pop(batch.batch_id, None)
            return None
        if not await self._is_stored(batch, view):
            return None
        await self._note_missing(batch, view)
        batch = await self._noted(batch, view)
        reason = overspent(batch.budget)
        return reason if reason and await self._is_final(batch, view) else None

    async def _is_final(self, batch: Batch, view: BudgetView) -> bool:
        """Freeze the account, and return whether its figures are still those of the view.

        The account may have granted a smaller call than the rejected one meanwhile.
        """
        now = await self._accounts.publish(terms_of(batch, frozen=True))
        return now is not None and (now.held, now.spent) == (NOTHING, view.spent)

    async def publish(self, batch: Batch) -> BudgetView | None:
        """Update the account, or create a missing one; None for a batch without a budget."""
        if not batch.budget.is_limited:
            return None
        view = await self._accounts.publish(terms_of(batch, frozen=False)) or await self._created(batch)
        return await self._recorded(batch, view) if view else None

    async def record_unrecorded(self, batch: Batch) -> None:
        """Record the unrecorded spend of a paused batch; a missing account is not created."""
        if batch.budget.is_limited and (view := await self._accounts.publish(terms_of(batch))):
            await self._recorded(batch, view)

    async def _recorded(self, batch: Batch, view: BudgetView) -> BudgetView:
        """Convert dead executors' reservations to spend, and record all spend that no event records."""
        if dead := await self._dead(view):
            logger.warning(
                "reservations of dead executors count as spent",
                extra={"batch_id": batch.batch_id, "executors": dead},
            )
            view = await self._accounts.publish(terms_of(batch, dead=dead)) or view
        self._holding[batch.batch_id] = view.holders
        if _exceeds(view.unrecorded, unrecorded_of(batch)):
            await self._ledger.set_unrecorded_spend(
                batch.batch_id, view.unrecorded.usd, view.unrecorded.tokens
            )
        return view

    async def close(self, batch_id: str) -> None:
        """Remove the account of a finished batch."""
        self._waits.pop(batch_id, None)
        self._holding.pop(batch_id, None)
        await self._accounts.close(batch_id)

    async def _created(self, batch: Batch) -> BudgetView | None:
        recovery, settled = 0.0, dict[str, Amount]()
        if batch.published and await self._executor_registry.live():
            recovery = RECOVERY
            settled = _amounts(await self._ledger.spent_by_source(batch.batch_id))
            logger.info("budget account created again", extra={"batch_id": batch.batch_id})
        create = NewAccount(recovery, settled, self._holding.get(batch.batch_id, {}))
        # The spend by source and its total come from one snapshot, so nothing is counted twice.
        terms = terms_of(batch)
        recorded = larger(terms.recorded, sum(settled.values(), NOTHING))
        return await self._accounts.publish(replace(terms, recorded=recorded), create=create)

    async def _dead(self, view: BudgetView) -> list[str]:
        executors = [name for name in view.holders if not name.startswith(PROVIDER_BATCH)]
        if not executors or not self._is_settled():
            return []
        live = await self._executor_registry.filter_live(executors)
        return sorted(set(executors) - live)

    async def _is_stored(self, batch: Batch, view: BudgetView) -> bool:
        """Whether every settlement is recorded, or the difference has not changed for long enough."""
        recorded = recorded_of(batch)
        if not _exceeds(view.spent, recorded + view.unrecorded) and await self._is_each_stored(batch, view):
            self._waits.pop(batch.batch_id, None)
            return True
        wait = self._waits.get(batch.batch_id)
        if wait is None or (wait.spent, wait.recorded) != (view.spent, recorded):
            wait = self._waits[batch.batch_id] = StorageWait(self._clock(), view.spent, recorded)
        return self._clock() - wait.since >= STORED_WITHIN

    async def _is_each_stored(self, batch: Batch, view: BudgetView) -> bool:
        """Whether the settlements of each holder are recorded; checked only before a pause.

        Totals alone can hide an event that is not stored yet: a dead executor's call may count twice, as
        an estimate and by its event.
        """
        if not view.needed and overspent(batch.budget) is None:
            return True
        recorded = _amounts(await self._ledger.spent_by_source(batch.batch_id))
        return not any(
            _exceeds(settled, recorded.get(holder, NOTHING))
            for holder, settled in view.settled.items()
            if not holder.startswith(PROVIDER_BATCH)
        )

    async def _note_missing(self, batch: Batch, view: BudgetView) -> None:
        """Record settlements without an event, so that the ledger and the account have the same figure."""
        missing = view.spent - recorded_of(batch)
        if _exceeds(missing, unrecorded_of(batch)):
            await self._ledger.set_unrecorded_spend(batch.batch_id, missing.usd, missing.tokens)

    async def _noted(self, batch: Batch, view: BudgetView) -> Batch:
        """Record the cost of the next call where the account has rejected a call."""
        if view.needed:
            await self._ledger.set_next_call_cost(batch.batch_id, view.needed.usd, view.needed.tokens)
        elif not batch.budget.next_usd and not batch.budget.next_tokens:
            return batch
        else:
            await self._ledger.set_next_call_cost(batch.batch_id, NOTHING.usd, 0)
        return await self._ledger.batch(batch.batch_id) or batch


def terms_of(batch: Batch, *, dead: list[str] | None = None, frozen: bool | None = None) -> BudgetTerms:
    """Convert the ledger's budget to the terms of an account."""
    limit = None if batch.budget.max_cost_usd is None else int(batch.budget.max_cost_usd * 1_000_000_000)
    return BudgetTerms(
        batch.batch_id,
        limit,
        batch.budget.max_tokens,
        recorded_of(batch),
        unrecorded_of(batch),
        dead or (),
        frozen,
    )


def recorded_of(batch: Batch) -> Amount:
    """The spend that events record."""
    return Amount(nanodollars(batch.progress.cost_usd), batch.progress.tokens)


def unrecorded_of(batch: Batch) -> Amount:
    """The spend that no event records."""
    return Amount(nanodollars(batch.budget.unrecorded_usd), batch.budget.unrecorded_tokens)


def _amounts(spent: "Mapping[str, tuple[object, int]]") -> dict[str, Amount]:
    return {
        source: Amount(nanodollars(cost), tokens)  # type: ignore[arg-type]
        for source, (cost, tokens) in spent.items()
    }


ROUNDING = 1_000
"""Nanodollars by which sums of rounded amounts may differ."""


def _exceeds(one: Amount, other: Amount) -> bool:
    return one.cost > other.cost + ROUNDING or one.tokens > other.tokens
