"""When a batch should not go on by itself: its budget is spent, or nothing of it can go well. Pure."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple, Self, TypeVar

from projections.folds.amounts import ZERO
from projections.ledger.contract import Batch, Budget, FailedEvaluation

Figure = TypeVar("Figure", Decimal, int)
MEANINGLESS = Decimal("0.000000001")
"""The least that an account can need: a call of unknown cost."""
LONGEST_REASON = 300
LOOKED_AT = 10
"""Failures looked at for each that is wanted: some were never tried, and say nothing."""


def overspent(budget: Budget) -> str | None:
    """Write that a budget has no room for another call, with its figures, if that is so."""
    if _is_spent(budget.max_cost_usd, budget.spent_usd, budget.next_usd):
        limit, spent = dollars(budget.max_cost_usd or ZERO), dollars(budget.spent_usd)
        return f"budget {limit}: {spent} spent{unknown_cost(budget)}{_next_cost(budget)}"
    if _is_spent(budget.max_tokens, budget.spent_tokens, budget.next_tokens):
        spent = f"{budget.spent_tokens:,} spent{unknown_tokens(budget)}"
        return f"budget {budget.max_tokens:,} tokens: {spent}{_next_tokens(budget)}"
    return None


def unknown_cost(budget: Budget) -> str:
    """Write how much of the spend is an estimate, if any of it is."""
    if not budget.unrecorded_usd:
        return ""
    return f", of it {dollars(budget.unrecorded_usd)} for calls whose cost is unknown"


def unknown_tokens(budget: Budget) -> str:
    """Write the same of tokens."""
    if not budget.unrecorded_tokens:
        return ""
    return f", of it {budget.unrecorded_tokens:,} for calls whose usage is unknown"


def _is_spent(limit: Figure | None, spent: Figure, needed: Figure) -> bool:
    return limit is not None and (spent >= limit or spent + needed > limit)


def _next_cost(budget: Budget) -> str:
    known = budget.next_usd > MEANINGLESS
    return f", the next call may cost up to {dollars(budget.next_usd)}" if known else ""


def _next_tokens(budget: Budget) -> str:
    return f", the next call may take up to {budget.next_tokens:,}" if budget.next_tokens > 1 else ""


def over(budget: Budget) -> tuple[Decimal, int]:
    """Return by how much a budget was exceeded: dollars and tokens."""
    usd = ZERO if budget.max_cost_usd is None else max(ZERO, budget.spent_usd - budget.max_cost_usd)
    return usd, 0 if budget.max_tokens is None else max(0, budget.spent_tokens - budget.max_tokens)


def more(budget: Budget) -> tuple[str, ...]:
    """Write the flags that would let an overspent batch go on, with twice of what it had."""
    flags: list[str] = []
    if _is_spent(budget.max_cost_usd, budget.spent_usd, budget.next_usd):
        enough = _twice(budget.max_cost_usd or ZERO, budget.spent_usd + budget.next_usd)
        flags += ["--max-cost", _plain(enough)]
    if _is_spent(budget.max_tokens, budget.spent_tokens, budget.next_tokens):
        needed = budget.spent_tokens + budget.next_tokens
        flags += ["--max-tokens", str(2 * max(budget.max_tokens or 0, needed // 2 + 1))]
    return tuple(flags)


def budget_words(budget: Budget) -> str:
    """Say what a batch may cost."""
    cost = "any cost" if budget.max_cost_usd is None else f"at most {dollars(budget.max_cost_usd)}"
    tokens = "any tokens" if budget.max_tokens is None else f"at most {budget.max_tokens:,} tokens"
    return f"{cost}, {tokens}"


def dollars(amount: Decimal) -> str:
    """Write an amount as people do: $5.00, and $0.0125 where cents would hide it."""
    if amount >= 1 or not amount:
        return f"${amount:,.2f}"
    digits = f"{amount:.6f}".rstrip("0") if amount >= Decimal("0.0001") else f"{amount:.9f}".rstrip("0")
    return f"${digits.ljust(len('0.00'), '0')}"


def _twice(limit: Decimal, needed: Decimal) -> Decimal:
    """Double a limit, or what is needed where that is more, rounded up to two digits."""
    if 2 * limit > needed:
        return 2 * limit
    last = Decimal(1).scaleb((2 * needed).adjusted() - 1)
    return (2 * needed / last).to_integral_value(ROUND_CEILING) * last


def _plain(amount: Decimal) -> str:
    written = f"{amount:f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


class Streak(NamedTuple):
    """How many evaluations in a row have failed, as far as counters tell.

    What ended otherwise since the last look may have come before or after: the row then begins anew.
    """

    otherwise: int
    """Evaluations that have ended, but did not fail."""
    before: int
    """Those that had failed when the row began."""
    failed: int

    @classmethod
    def begin(cls, batch: Batch) -> Self:
        """Begin with what a batch has come to."""
        return cls(batch.ended - batch.failed, batch.failed, batch.failed)

    def go_on(self, batch: Batch) -> "Streak":
        """Take in what a batch has come to since."""
        if batch.ended - batch.failed != self.otherwise or batch.failed < self.failed:
            return Streak.begin(batch)
        return self._replace(failed=batch.failed)

    @property
    def length(self) -> int:
        """Failures in a row."""
        return self.failed - self.before


def hopeless(failures: Sequence[FailedEvaluation], *, after: int) -> str | None:
    """Say that the newest failures leave no hope for the rest: so many, each for good at the first try."""
    tried = [each for each in failures if each.was_tried][:after]
    if len(tried) < after or not all(each.is_at_once for each in tried):
        return None
    many = f"{after:,} evaluations in a row" if after > 1 else "an evaluation"
    said = f"{many} failed: {_error(tried[0])}"
    return said if len(said) <= LONGEST_REASON else f"{said[: LONGEST_REASON - 1]}…"


def _error(failure: FailedEvaluation) -> str:
    """Say what went wrong in one line; where in the code it did is for whoever looks at one of them."""
    first = next(iter(failure.message.strip().splitlines()), "")
    return f"{failure.kind}: {first}" if first else failure.kind
