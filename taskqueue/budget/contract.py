"""The contract of budget accounts: one reservation account per batch, shared by the whole fleet.

Amounts are whole numbers, nanodollars and tokens, so that sums are exact on every side. A holder (an
executor instance, or a provider batch) declares its cumulative state with every request: what it holds
reserved, and what it has settled since it started. A repeated, reordered or lost request therefore changes
nothing: the account takes differences of cumulative counters, as a grow-only counter (CRDT) does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple, Protocol

NANO = 1_000_000_000
UNKNOWN = 10**15
"""An estimate that is not known: larger than any budget, so it never fits beside another reservation."""
PROVIDER_BATCH = "provider-batch:"
"""Prefix of holders whose reservations the coordinator declares from Postgres, which is their authority."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Money and tokens."""

    cost: int = 0
    """Nanodollars."""
    tokens: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(min(UNKNOWN, self.cost + other.cost), min(UNKNOWN, self.tokens + other.tokens))

    def __sub__(self, other: "Amount") -> "Amount":
        """Subtract, down to zero."""
        return Amount(max(0, self.cost - other.cost), max(0, self.tokens - other.tokens))

    def __bool__(self) -> bool:
        return bool(self.cost or self.tokens)

    @property
    def usd(self) -> Decimal:
        """The money in dollars."""
        return Decimal(self.cost) / NANO


NOTHING = Amount()


def larger(one: Amount, other: Amount) -> Amount:
    """Take the larger of each figure."""
    return Amount(max(one.cost, other.cost), max(one.tokens, other.tokens))


def nanodollars(usd: float | Decimal) -> int:
    """Convert dollars, rounded up: a budget is never widened by rounding."""
    exact = usd if isinstance(usd, Decimal) else Decimal(repr(usd))
    return int((exact * NANO).to_integral_value(ROUND_CEILING))


class CostMaximum(NamedTuple):
    """The largest observed cost of one kind of call, over so many calls."""

    calls: int = 0
    cost: int = 0
    tokens: int = 0

    def merged(self, other: "CostMaximum") -> "CostMaximum":
        """Take the larger of each figure."""
        return CostMaximum(*map(max, self, other))


NOT_OBSERVED = CostMaximum()


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """A holder's cumulative state, and how many calls it wants to reserve."""

    batch_id: str
    holder: str
    held: Amount = NOTHING
    settled: Amount = NOTHING
    """Everything this holder has settled since it started."""
    unrecorded: Amount = NOTHING
    """The part of it that no event records: the estimates of calls whose cost never became known."""
    at_risk: Amount = NOTHING
    """What likely was spent of `held`, should the holder be gone: its calls were paid, answered or not."""
    wanted: int = 0
    unit: Amount = NOTHING
    """What to reserve for each call."""
    likely: Amount = NOTHING
    """What each call likely costs."""
    least: Amount = NOTHING
    """What must be left for a single call while nothing else is reserved."""
    own: Amount = NOTHING
    """The part of `held` that the call draws on besides: a top-up."""
    maxima: Mapping[str, CostMaximum] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """How many calls may start, and what is reserved for each."""

    exists: bool
    """False where the account is missing: nothing is granted until the coordinator publishes it."""
    granted: int = 0
    reserved: Amount = NOTHING
    used: Amount = NOTHING
    """What is settled and reserved, before this grant."""
    limits_cost: bool = False
    limits_tokens: bool = False
    maxima: Mapping[str, CostMaximum] = field(default_factory=dict)


NO_ACCOUNT = BudgetGrant(exists=False)


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """What Postgres, the authority, has on record of a batch."""

    batch_id: str
    limit_cost: int | None
    limit_tokens: int | None
    recorded: Amount = NOTHING
    unrecorded: Amount = NOTHING
    dead: Sequence[str] = ()
    """Holders that are gone: their reservations become spend at once."""
    frozen: bool | None = None
    """Whether the account grants nothing from now on, so its figures are final; None changes nothing."""


class HolderReservation(NamedTuple):
    """What a holder has reserved, and what likely is spent of it should it be gone."""

    held: Amount = NOTHING
    at_risk: Amount = NOTHING


@dataclass(frozen=True, slots=True)
class NewAccount:
    """How to create an account that is missing."""

    recovery: float = 0.0
    """Seconds during which nothing is granted: holders that live declare their state again."""
    settled: Mapping[str, Amount] = field(default_factory=dict)
    """What Postgres has on record from each holder: only what it settled beyond that is added."""
    holding: Mapping[str, HolderReservation] = field(default_factory=dict)
    """What was last seen of each holder, until it declares itself again, or is known to be gone."""


@dataclass(frozen=True, slots=True)
class BudgetView:
    """An account at one moment."""

    spent: Amount = NOTHING
    held: Amount = NOTHING
    unrecorded: Amount = NOTHING
    needed: Amount = NOTHING
    """What the last refused call needs, where it does not fit even alone; nothing since a grant."""
    holders: Mapping[str, HolderReservation] = field(default_factory=dict)
    """Who holds reservations."""
    maxima: Mapping[str, CostMaximum] = field(default_factory=dict)
    settled: Mapping[str, Amount] = field(default_factory=dict)
    """What each holder has settled that its events record, stored or not."""


class BudgetAccounts(Protocol):
    """Reservation accounts; raises `QueueUnavailable` where they can't be reached."""

    async def request(self, requests: Sequence[BudgetRequest]) -> list[BudgetGrant]:
        """Declare, settle and reserve, each request atomically, all in one round trip."""
        ...

    async def publish(self, terms: BudgetTerms, *, create: NewAccount | None = None) -> BudgetView | None:
        """Set limits and recorded spend; None where the account is missing and not to be created."""
        ...

    async def close(self, batch_id: str) -> None:
        """Remove an account."""
        ...
