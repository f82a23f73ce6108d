"""The reasons of an automatic pause: a spent budget, or a streak of permanent failures. Pure."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple, Self, TypedDict, TypeVar

from projections.folds.progress import Progress
from projections.folds.scorecard import ZERO
from projections.ledger.batch import Budget
from projections.ledger.contract import FailedEvaluation

Figure = TypeVar("Figure", Decimal, int)
MEANINGLESS = Decimal("0.000000001")
"""The smallest amount an account can need: a call of unknown cost."""
LONGEST_REASON = 300
READ_FACTOR = 10
"""Failures read for each one needed: some evaluations failed without a call and don't count."""


class BudgetChange(TypedDict, total=False):
    """The limits to change in a batch's budget; None: no limit."""

    max_cost_usd: Decimal | None
    max_tokens: int | None


def overspent(budget: Budget) -> str | None:
    """Describe a budget that has no room for another call, with its figures; None if it has room."""
    if _is_spent(budget.max_cost_usd, budget.spent_usd, budget.next_usd):
        limit, spent = dollars(budget.max_cost_usd or ZERO), dollars(budget.spent_usd)
        return f"budget {limit}: {spent} spent{unknown_cost(budget)}{_next_cost(budget)}"
    if _is_spent(budget.max_tokens, budget.spent_tokens, budget.next_tokens):
        spent = f"{budget.spent_tokens:,} spent{unknown_tokens(budget)}"
        return f"budget {budget.max_tokens:,} tokens: {spent}{_next_tokens(budget)}"
    return None


def unknown_cost(budget: Budget) -> str:
    """Describe the part of the spend that is an estimate, if any."""
    if not budget.unrecorded_usd:
        return ""
    return f", of it {dollars(budget.unrecorded_usd)} for calls whose cost is unknown"


def unknown_tokens(budget: Budget) -> str:
    """Describe the part of the tokens that is an estimate, if any."""
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
    """Return the flags that let an overspent batch resume, with twice its limits."""
    flags: list[str] = []
    if _is_spent(budget.max_cost_usd, budget.spent_usd, budget.next_usd):
        enough = _twice(budget.max_cost_usd or ZERO, budget.spent_usd + budget.next_usd)
        flags += ["--max-cost", _plain(enough)]
    if _is_spent(budget.max_tokens, budget.spent_tokens, budget.next_tokens):
        needed = budget.spent_tokens + budget.next_tokens
        flags += ["--max-tokens", str(2 * max(budget.max_tokens or 0, needed // 2 + 1))]
    return tuple(flags)


def budget_words(budget: Budget) -> str:
    """Describe the limits of a budget."""
    cost = "any cost" if budget.max_cost_usd is None else f"at most {dollars(budget.max_cost_usd)}"
    tokens = "any tokens" if budget.max_tokens is None else f"at most {budget.max_tokens:,} tokens"
    return f"{cost}, {tokens}"


def dollars(amount: Decimal) -> str:
    """Format an amount: $5.00, and $0.0125 where cents would hide it."""
    if amount >= 1 or not amount:
        return f"${amount:,.2f}"
    digits = f"{amount:.6f}".rstrip("0") if amount >= Decimal("0.0001") else f"{amount:.9f}".rstrip("0")
    return f"${digits.ljust(len('0.00'), '0')}"


def _twice(limit: Decimal, needed: Decimal) -> Decimal:
    """Double a limit, or the needed amount where that is larger, rounded up to two digits."""
    if 2 * limit > needed:
        return 2 * limit
    last = Decimal(1).scaleb((2 * needed).adjusted() - 1)
    return (2 * needed / last).to_integral_value(ROUND_CEILING) * last


def _plain(amount: Decimal) -> str:
    written = f"{amount:f}"
    return written.rstrip("0").rstrip(".") if "." in written else written


class Streak(NamedTuple):
    """The failure streak of a batch, derived from its counters.

    The order of endings between two polls is unknown, so any other ending in between resets the streak.
    """

    otherwise: int
    """Evaluations that have ended without failing."""
    before: int
    """Evaluations that had failed when the streak began."""
    failed: int

    @classmethod
    def begin(cls, progress: Progress) -> Self:
        """Start a streak at the current counters of a batch."""
        return cls(progress.ended - progress.failed, progress.failed, progress.failed)

    def go_on(self, progress: Progress) -> "Streak":
        """Update the streak with the current counters of a batch."""
        if progress.ended - progress.failed != self.otherwise or progress.failed < self.failed:
            return Streak.begin(progress)
        return self._replace(failed=progress.failed)

    @property
    def length(self) -> int:
        """The number of consecutive failures."""
        return self.failed - self.before


def permanent_streak(failures: Sequence[FailedEvaluation], *, after: int) -> str | None:
    """Describe the newest `after` failures if each is permanent and happened at the first attempt."""
    tried = [each for each in failures if each.was_tried][:after]
    if len(tried) < after or not all(each.is_at_once for each in tried):
        return None
    many = f"{after:,} evaluations in a row" if after > 1 else "an evaluation"
    reason = f"{many} failed: {_error(tried[0])}"
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"


def _error(failure: FailedEvaluation) -> str:
    """Return the first line of an error; the traceback stays with the evaluation."""
    first = next(iter(failure.message.strip().splitlines()), "")
    return f"{failure.kind}: {first}" if first else failure.kind
