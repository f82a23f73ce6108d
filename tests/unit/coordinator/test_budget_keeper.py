"""The budget keeper: accounts, dead executors, and when a batch pauses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from coordinator.budget_keeper import RECOVERY, STORED_WITHIN, BudgetKeeper
from projections.folds.progress import Progress
from projections.ledger.batch import Batch
from projections.ledger.memory import MemoryLedger
from projections.store.memory import MemoryStore
from taskqueue.budget.contract import (
    Amount,
    BudgetGrant,
    BudgetRequest,
    BudgetTerms,
    BudgetView,
    NewAccount,
)
from taskqueue.budget.memory import MemoryBudgets
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.memory import MemoryExecutorRegistry
from tests.batches import changed
from tests.builders import START

DOLLAR = 10**9
BATCH = Batch("b", date(2026, 1, 1), "", "p", 1, b"", "running", "", 9, "b.9", None, False)
EACH = Amount(DOLLAR // 10)


class LedgerBySource(MemoryLedger):
    """A ledger whose recorded spend by source is set by the test, not summed from events."""

    recorded: Mapping[str, str] = {}

    async def spent_by_source(self, batch_id: str) -> Mapping[str, tuple[Decimal, int]]:
        """Return what was given."""
        return {source: (Decimal(usd), 0) for source, usd in self.recorded.items()}


@dataclass
class World:
    """A budget keeper in memory, with its ledger and accounts."""

    now: float = 1_000.0
    is_settled: bool = True
    keeper: BudgetKeeper = field(init=False)

    def __post_init__(self) -> None:
        self.tables = MemoryStore(self.clock)
        self.ledger = LedgerBySource(self.tables, shards=1, now=lambda: START)
        self.accounts = MemoryBudgets(self.clock)
        self.executor_registry = MemoryExecutorRegistry(self.clock)
        self.keeper = BudgetKeeper(
            *(self.ledger, self.accounts, self.executor_registry),
            is_settled=lambda: self.is_settled,
            clock=self.clock,
        )

    def clock(self) -> float:
        return self.now

    def batch(self, *, spent: str = "0", by_source: Mapping[str, str] | None = None) -> Batch:
        self.ledger.recorded = {"a": spent} if by_source is None else by_source
        held = self.ledger.batches.held.get("b", BATCH)
        self.tables.progress["b", 0] = Progress(cost_usd=Decimal(spent))
        batch = changed(held, max_cost_usd=Decimal(1), cost_usd=Decimal(spent))
        self.ledger.batches.held["b"] = batch
        return batch

    async def reserve(self, holder: str, wanted: int, **fields: object) -> BudgetGrant:
        asked = BudgetRequest("b", holder, wanted=wanted, unit=EACH, least=EACH, likely=EACH, **fields)  # type: ignore[arg-type]
        [grant] = await self.accounts.request([asked])
        return grant


async def test_calls_of_a_dead_executor_are_recorded_as_spend() -> None:
    """They are recorded at once, except in the grace period, when missing heartbeats prove nothing."""
    world = World()
    await world.keeper.publish(world.batch())
    await world.reserve("a", 3)
    world.is_settled = False
    await world.keeper.publish(world.batch())
    assert world.ledger.batches.held["b"].budget.unrecorded_usd == 0
    world.is_settled = True
    view = await world.keeper.publish(world.batch())
    assert view
    assert (view.held, view.spent) == (Amount(), Amount(3 * DOLLAR // 10))
    assert world.ledger.batches.held["b"].budget.unrecorded_usd == Decimal("0.3")


async def test_a_lost_account_is_created_again_and_waits_for_declarations() -> None:
    """The last known reservations count until executors declare; then the rest is granted again."""
    world = World()
    await world.keeper.publish(world.batch())
    await world.executor_registry.heartbeat(ExecutorInstance("a", "a"))
    await world.reserve("a", 6)
    await world.keeper.publish(world.batch())
    await world.accounts.close("b")
    view = await world.keeper.publish(world.batch(spent="0.1"))
    assert view
    assert (view.held, view.spent) == (Amount(6 * DOLLAR // 10), Amount(DOLLAR // 10))
    assert (await world.reserve("c", 9)).granted == 0
    world.now += RECOVERY
    assert (await world.reserve("c", 9)).granted == 3


async def test_lagging_storage_is_not_unrecorded_spend() -> None:
    """The wait starts again when a call ends it, and whenever storage advances."""
    world = World()
    await world.keeper.publish(world.batch())
    await world.executor_registry.heartbeat(ExecutorInstance("a", "a"))
    await world.reserve("a", 0, settled=EACH)
    assert await world.keeper.reason_to_pause(world.batch()) is None
    await world.reserve("a", 0, settled=EACH, held=EACH)
    assert await world.keeper.reason_to_pause(world.batch(spent="0.1")) is None
    world.now += STORED_WITHIN
    for recorded in ("0.85", "0.9", "0.92"):
        await world.reserve("a", 1, settled=Amount(DOLLAR * 95 // 100))
        assert await world.keeper.reason_to_pause(world.batch(spent=recorded)) is None
        world.now += STORED_WITHIN / 2
    assert await world.keeper.reason_to_pause(world.batch(spent="0.95"))
    assert world.ledger.batches.held["b"].budget.unrecorded_usd == 0


async def test_a_batch_pauses_when_nothing_is_held_and_all_is_recorded() -> None:
    """It pauses neither during a call nor before its figure is final, unless storage takes too long."""
    world = World()
    await world.keeper.publish(world.batch())
    await world.executor_registry.heartbeat(ExecutorInstance("a", "a"))
    held = (await world.reserve("a", 99)).granted
    assert held == 10
    spent = Amount(DOLLAR * 95 // 100)
    await world.reserve("a", 1, held=EACH, settled=Amount(DOLLAR * 85 // 100))
    assert await world.keeper.reason_to_pause(world.batch(spent="0.85")) is None
    assert (await world.reserve("a", 1, settled=spent)).granted == 0
    assert await world.keeper.reason_to_pause(world.batch(spent="0.85")) is None
    reason = "budget $1.00: $0.95 spent, the next call may cost up to $0.10"
    assert await world.keeper.reason_to_pause(world.batch(spent="0.95")) == reason
    assert await world.keeper.reason_to_pause(world.batch(spent="0.85")) is None
    world.now += STORED_WITHIN
    unknown = "$0.95 spent, of it $0.10 for calls whose cost is unknown"
    noted = reason.replace("$0.95 spent", unknown)
    assert await world.keeper.reason_to_pause(world.batch(spent="0.85")) == noted
    assert world.ledger.batches.held["b"].budget.unrecorded_usd == Decimal("0.1")


async def test_a_call_that_counts_twice_hides_no_unstored_event() -> None:
    """A dead executor's call counts as estimate and event; the pause still waits for another's event."""
    world = World()
    await world.keeper.publish(world.batch())
    await world.executor_registry.heartbeat(ExecutorInstance("a", "a"))
    await world.reserve("a", 8)
    await world.reserve("dead", 1)
    settled = Amount(DOLLAR * 92 // 100)
    assert (await world.reserve("a", 1, settled=settled)).granted == 0
    behind = world.batch(spent="0.92", by_source={"a": "0.82", "dead": "0.1"})
    assert await world.keeper.reason_to_pause(behind) is None
    stored = world.batch(spent="1.02", by_source={"a": "0.92", "dead": "0.1"})
    reason = await world.keeper.reason_to_pause(stored)
    assert reason
    assert reason.startswith("budget $1.00: $1.12 spent, of it $0.10 for calls whose cost is unknown")


async def test_no_call_is_granted_between_the_final_figure_and_the_pause() -> None:
    """A smaller call that fits either delays the pause, or is rejected by the frozen account."""
    world = World()
    await world.keeper.publish(world.batch())
    await world.executor_registry.heartbeat(ExecutorInstance("a", "a"))
    spent = Amount(DOLLAR * 95 // 100)
    assert (await world.reserve("a", 1, settled=spent)).granted == 0
    small = BudgetRequest("b", "a", settled=spent, wanted=1, unit=Amount(DOLLAR // 100))
    published = world.accounts.publish
    granted = list[int]()

    async def granting_first(terms: BudgetTerms, *, create: NewAccount | None = None) -> BudgetView | None:
        if terms.frozen:
            granted.append((await world.accounts.request([small]))[0].granted)
        return await published(terms, create=create)

    world.accounts.publish = granting_first  # type: ignore[method-assign]
    assert await world.keeper.reason_to_pause(world.batch(spent="0.95")) is None
    assert granted == [1]
    world.accounts.publish = published  # type: ignore[method-assign]
    await world.reserve("a", 0, settled=spent)
    await world.reserve("a", 1, settled=spent)
    assert await world.keeper.reason_to_pause(world.batch(spent="0.95"))
    assert (await world.accounts.request([small]))[0].granted == 0
    await world.keeper.publish(world.batch(spent="0.95"))
    assert (await world.accounts.request([small]))[0].granted == 1
