"""The contract of budget accounts: one reservation account per batch, shared by all executors.

Amounts are integers, nanodollars and tokens, so that sums are exact everywhere. A holder (an executor
instance, or a provider batch) declares its cumulative state with every request: what it has reserved, and
what it has settled since it started. A repeated, reordered or lost request therefore changes nothing: the
account uses differences of cumulative counters, as a grow-only counter (CRDT) does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple, Protocol

NANO = 1_000_000_000
UNKNOWN = 10**15
"""An unknown estimate: larger than any budget, so it never fits beside another reservation."""
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
    """Return the larger of each figure."""
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
        """Return the larger of each figure."""
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
    """The likely spend of `held` if the holder expires: its calls were paid, answered or not."""
    wanted: int = 0
    unit: Amount = NOTHING
    """The amount to reserve for each call."""
    likely: Amount = NOTHING
    """The likely cost of each call."""
    least: Amount = NOTHING
    """The amount that must be left for a single call while nothing else is reserved."""
    own: Amount = NOTHING
    """The part of `held` that the call draws on in addition: a top-up."""
    maxima: Mapping[str, CostMaximum] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """The number of calls that may start, and the reservation of each."""

    exists: bool
    """False where the account is missing: nothing is granted until the coordinator publishes it."""
    granted: int = 0
    reserved: Amount = NOTHING
    used: Amount = NOTHING
    """The settled and reserved amounts before this grant."""
    limits_cost: bool = False
    limits_tokens: bool = False
    maxima: Mapping[str, CostMaximum] = field(default_factory=dict)


NO_ACCOUNT = BudgetGrant(exists=False)


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """The recorded state of a batch in Postgres, the authority."""

    batch_id: str
    limit_cost: int | None
    limit_tokens: int | None
    recorded: Amount = NOTHING
    unrecorded: Amount = NOTHING
    dead: Sequence[str] = ()
    """Expired holders: their reservations become spend at once."""
    frozen: bool | None = None
    """Whether the account grants nothing from now on, so its figures are final; None changes nothing."""


class HolderReservation(NamedTuple):
    """The reservation of a holder, and its likely spend if the holder expires."""

    held: Amount = NOTHING
    at_risk: Amount = NOTHING


@dataclass(frozen=True, slots=True)
class NewAccount:
    """The initial state of a missing account."""

    recovery: float = 0.0
    """Seconds during which nothing is granted: holders that live declare their state again."""
    settled: Mapping[str, Amount] = field(default_factory=dict)
    """The recorded spend of each holder in Postgres: only settlements beyond it are added."""
    holding: Mapping[str, HolderReservation] = field(default_factory=dict)
    """The last known state of each holder, until it declares itself again, or has expired."""


@dataclass(frozen=True, slots=True)
class BudgetView:
    """An account at one moment."""

    spent: Amount = NOTHING
    held: Amount = NOTHING
    unrecorded: Amount = NOTHING
    needed: Amount = NOTHING
    """The amount that the last rejected call needs, if it does not fit even alone; None since a grant."""
    holders: Mapping[str, HolderReservation] = field(default_factory=dict)
    """The holders of reservations."""
    maxima: Mapping[str, CostMaximum] = field(default_factory=dict)
    settled: Mapping[str, Amount] = field(default_factory=dict)
    """The recorded settlements of each holder, stored or not."""


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
