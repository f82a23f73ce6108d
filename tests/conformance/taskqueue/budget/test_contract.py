"""The contract of budget accounts: the script on Redis and the Python model, driven by the same traces."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from redis.asyncio import Redis

from eventlog.redis_streams import connect
from taskqueue.budget.account import LEASE
from taskqueue.budget.contract import (
    NOTHING,
    UNKNOWN,
    Amount,
    BudgetAccounts,
    BudgetGrant,
    BudgetRequest,
    BudgetTerms,
    BudgetView,
    CostMaximum,
    HolderReservation,
    NewAccount,
)
from taskqueue.budget.memory import MemoryBudgets
from taskqueue.budget.redis_budgets import RedisBudgets

TERMS = BudgetTerms("b", 1_000, None)
EACH = Amount(100, 10)


@dataclass
class Accounts:
    """Accounts of one implementation, and their clock."""

    redis: Redis | None = None
    now: float = 1_700_000_000.0
    budgets: BudgetAccounts = field(init=False)

    def __post_init__(self) -> None:
        self.budgets = RedisBudgets(self.redis, now=self.clock) if self.redis else MemoryBudgets(self.clock)

    def clock(self) -> float:
        return self.now

    async def lose_everything(self) -> None:
        if self.redis:
            await self.redis.flushall()
        else:
            self.budgets = MemoryBudgets(self.clock)

    async def reserve(self, wanted: int, unit: Amount = EACH, **fields: object) -> BudgetGrant:
        request = BudgetRequest("b", "a", wanted=wanted, unit=unit, least=unit)
        [grant] = await self.budgets.request([replace(request, **fields)])  # type: ignore[arg-type]
        return grant

    async def publish(self, terms: BudgetTerms = TERMS, **create: object) -> BudgetView:
        seen = await self.budgets.publish(terms, create=NewAccount(**create))  # type: ignore[arg-type]
        assert seen
        return seen


@pytest.fixture(params=["memory", "redis"])
async def form(request: pytest.FixtureRequest) -> AsyncIterator[Accounts]:
    if request.param == "memory":
        yield Accounts()
        return
    redis = connect(request.getfixturevalue("redis_url"))
    yield Accounts(redis)
    await redis.aclose()


async def test_nothing_is_granted_without_an_account(form: Accounts) -> None:
    """A lost or unpublished account never widens a budget."""
    assert await form.reserve(1) == BudgetGrant(exists=False)
    assert await form.budgets.publish(TERMS) is None
    assert await form.budgets.request([]) == []


async def test_reservations_never_exceed_the_limit(form: Accounts) -> None:
    """Settled, reserved and estimated spend together stay within it, whichever holder reserves."""
    await form.publish()
    mine = await form.reserve(7)
    assert (mine.granted, mine.reserved) == (7, Amount(100, 0))
    assert (mine.limits_cost, mine.limits_tokens) == (True, False)
    theirs = await form.reserve(7, holder="b")
    assert theirs.granted == 3
    assert (await form.reserve(1, holder="b", held=Amount(300))).granted == 0
    assert (await form.publish()).held == Amount(1_000)


async def test_a_repeated_declaration_settles_once(form: Accounts) -> None:
    """Counters are cumulative, so a declaration can be repeated after a lost reply."""
    await form.publish()
    await form.reserve(5)
    for _ in range(3):
        await form.reserve(0, held=Amount(200), settled=Amount(250, 9))
    seen = await form.publish()
    assert (seen.spent, seen.held) == (Amount(250, 9), Amount(200))
    assert seen.holders == {"a": HolderReservation(Amount(200))}


async def test_a_pessimistic_estimate_gets_what_is_left_while_it_is_alone(
    form: Accounts,
) -> None:
    """Alone, it is granted as long as its minimum is left; then the account shows what it needs."""
    await form.publish()
    unsure = {"unit": Amount(UNKNOWN), "least": Amount(60)}
    assert (await form.reserve(4, **unsure)).reserved == Amount(1_000)
    assert (await form.reserve(4, holder="b", **unsure)).granted == 0
    seen = await form.publish()
    assert (seen.held, seen.needed) == (Amount(1_000), NOTHING)
    assert (await form.reserve(4, settled=Amount(930), **unsure)).granted == 1
    assert (await form.reserve(4, settled=Amount(950), **unsure)).granted == 0
    assert (await form.publish()).needed == Amount(60, 1)


async def test_a_smaller_call_does_not_hide_the_need_of_a_larger_one(form: Accounts) -> None:
    """Calls of judges that fit may still run, and the batch pauses after them."""
    await form.publish(replace(TERMS, recorded=Amount(850)))
    assert (await form.reserve(1, unit=Amount(200))).granted == 0
    assert (await form.reserve(1)).granted == 1
    assert (await form.publish()).needed == Amount(200, 1)
    await form.publish(replace(TERMS, limit_cost=2_000))
    assert (await form.reserve(1, unit=Amount(200, 1))).granted == 1
    assert (await form.publish()).needed == NOTHING


async def test_a_top_up_is_granted_beside_the_reservation_of_the_call(form: Accounts) -> None:
    """A call that holds all that is left may continue alone."""
    await form.publish(replace(TERMS, recorded=Amount(900)))
    assert (await form.reserve(1)).granted == 1
    assert (await form.reserve(1, held=Amount(100), own=Amount(100))).reserved == NOTHING
    assert (await form.reserve(1, held=Amount(100))).granted == 0


async def test_the_reservations_of_a_dead_holder_count_as_spent(form: Accounts) -> None:
    """At once if it is known to be dead, else after its lease; if it returns, it is not charged twice."""
    await form.publish()
    await form.reserve(2, likely=Amount(60, 6))
    await form.reserve(3, holder="b", likely=Amount(200))
    seen = await form.publish(replace(TERMS, dead=["a"]))
    assert (seen.spent, seen.unrecorded, seen.held) == (Amount(120, 12), Amount(120, 12), Amount(300))
    form.now += LEASE
    seen = await form.publish()
    assert (seen.spent, seen.unrecorded, seen.held) == (Amount(420, 12), Amount(420, 12), NOTHING)
    await form.reserve(0, settled=Amount(90))
    assert (await form.publish()).spent == Amount(420, 12)
    await form.reserve(0, settled=Amount(150))
    assert (await form.publish()).spent == Amount(450, 12)


async def test_a_provider_batch_without_a_declaration_is_released(form: Accounts) -> None:
    """Postgres is authoritative for provider batches: one that it does not have was never submitted."""
    await form.publish()
    await form.reserve(5, holder="provider-batch:1")
    form.now += LEASE
    seen = await form.publish()
    assert (seen.spent, seen.held) == (NOTHING, NOTHING)


async def test_nothing_is_granted_after_data_loss_until_holders_have_declared(form: Accounts) -> None:
    """Spend that Postgres does not have yet is added from their counters, and no spend is added twice."""
    await form.publish()
    await form.reserve(6)
    await form.lose_everything()
    assert (await form.reserve(1, held=Amount(300), settled=Amount(300))).exists is False
    recorded = replace(TERMS, recorded=Amount(200))
    await form.publish(recorded, recovery=5.0, settled={"a": Amount(200)})
    assert (await form.reserve(9, holder="b")).granted == 0
    await form.reserve(0, held=Amount(300), settled=Amount(300))
    form.now += 5
    assert (await form.reserve(9, holder="b")).granted == 4
    assert (await form.publish(recorded)).spent == Amount(300)


async def test_an_executor_that_dies_during_the_recovery_is_counted(form: Accounts) -> None:
    """A re-created account keeps the last known state of each holder until it declares itself again."""
    holding = {
        "a": HolderReservation(Amount(300), Amount(150)),
        "b": HolderReservation(Amount(200), Amount(100)),
    }
    seen = await form.publish(recovery=5.0, holding=holding)
    assert (seen.held, seen.holders) == (Amount(500), holding)
    await form.reserve(0, held=Amount(50))
    seen = await form.publish(replace(TERMS, dead=["b"]))
    assert (seen.held, seen.spent) == (Amount(50), Amount(100))


async def test_recorded_spend_and_limits_come_from_postgres(form: Accounts) -> None:
    """Spend never decreases; a larger limit takes effect in one step; maxima are shared."""
    await form.publish(replace(TERMS, recorded=Amount(990)))
    assert (await form.reserve(1)).granted == 0
    seen = await form.publish(replace(TERMS, limit_cost=2_000, recorded=Amount(5)))
    assert seen.spent == Amount(990)
    grant = await form.reserve(3, maxima={"target:0": CostMaximum(3, 90, 8)})
    assert (grant.granted, grant.maxima) == (3, {"target:0": CostMaximum(3, 90, 8)})
    await form.budgets.close("b")
    assert (await form.reserve(1)).exists is False


def amount(dice: Random, most: int = 400) -> Amount:
    return Amount(dice.choice([0, dice.randrange(most), UNKNOWN]), dice.choice([0, dice.randrange(most)]))


@pytest.mark.parametrize("seed", range(12))
async def test_the_script_and_the_python_model_agree_on_every_number(seed: int, redis_url: str) -> None:
    """Declarations, reservations, expiries, losses and limits are random; spend never decreases."""
    dice, redis = Random(seed), connect(redis_url)
    forms = [Accounts(), Accounts(redis)]
    spent = NOTHING
    try:
        for _ in range(80):
            step = dice.choice([0.0, 0.5, 3.0, 61.0]) if dice.random() < 0.3 else 0.0
            for form in forms:
                form.now += step
            if dice.random() < 0.3:
                cost, tokens = (dice.choice([None, dice.randrange(1, 3_000)]) for _ in range(2))
                dead = dice.choice([[], ["a"], ["a", "b"]])
                frozen = dice.choice([None, False, False, True])
                terms = BudgetTerms("b", cost, tokens, amount(dice), amount(dice, 50), dead, frozen)
                holding = {"b": HolderReservation(Amount(9, 2), Amount(4, 1))}
                new = NewAccount(dice.choice([0, 2.5]), {"a": Amount(5, 1)}, holding)
                create = dice.choice([None, new])
                views = [await form.budgets.publish(terms, create=create) for form in forms]
                assert views[0] == views[1]
                if seen := views[0]:
                    assert seen.spent.cost >= spent.cost
                    assert seen.spent.tokens >= spent.tokens
                    spent = seen.spent
            else:
                request = BudgetRequest(
                    "b",
                    dice.choice(["a", "b", "provider-batch:1"]),
                    held=Amount(dice.randrange(300), dice.randrange(300)),
                    settled=Amount(dice.randrange(300), dice.randrange(300)),
                    unrecorded=Amount(dice.randrange(300), dice.randrange(300)),
                    at_risk=Amount(dice.randrange(300), dice.randrange(300)),
                    wanted=dice.randrange(4),
                    likely=Amount(dice.randrange(30), dice.randrange(30)),
                    unit=amount(dice),
                    least=Amount(dice.randrange(200), dice.randrange(200)),
                    own=dice.choice([NOTHING, Amount(dice.randrange(300), 0)]),
                    maxima={"judge:x": CostMaximum(dice.randrange(9), dice.randrange(99), 1)},
                )
                grants = [(await form.budgets.request([request]))[0] for form in forms]
                assert grants[0] == grants[1], request
    finally:
        await redis.aclose()
