"""Batch progress: counters, folded from events and added in the transaction that stores them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from operator import attrgetter
from typing import Any, Self

from eventlog import payloads as p
from eventlog.lifecycle import SETTLED, Phase
from eventlog.timeline import Disposition, ReplayStep
from projections.folds.scorecard import EXACT, ZERO, Scorecard, exact

SPENDING_TYPES = frozenset({"responded", "scored", "completed"})
"""Event types that carry a cost."""


@dataclass(slots=True)
class Progress:
    """Counters of a batch, or what some events add to them, in the order of `batch_progress`' columns."""

    total: int = 0
    completed: int = 0
    passed: int = 0
    failed: int = 0
    timed_out: int = 0
    cancelled: int = 0
    retried: int = 0
    bridged: int = 0
    scored: int = 0
    score_sum: Decimal = ZERO
    tokens: int = 0
    cost_usd: Decimal = ZERO

    def __iadd__(self, other: "Progress") -> Self:
        self.total += other.total
        self.completed += other.completed
        self.passed += other.passed
        self.failed += other.failed
        self.timed_out += other.timed_out
        self.cancelled += other.cancelled
        self.retried += other.retried
        self.bridged += other.bridged
        self.scored += other.scored
        self.score_sum = EXACT.add(self.score_sum, other.score_sum)
        self.tokens += other.tokens
        self.cost_usd = EXACT.add(self.cost_usd, other.cost_usd)
        return self

    def __bool__(self) -> bool:
        return any(counters_of(self))

    @property
    def ended(self) -> int:
        """Evaluations that have ended."""
        return self.executed + self.cancelled

    @property
    def pending(self) -> int:
        """Evaluations that have not ended."""
        return max(0, self.total - self.ended)

    @property
    def dead_letters(self) -> int:
        """Evaluations that failed or timed out."""
        return self.failed + self.timed_out

    @property
    def executed(self) -> int:
        """Evaluations that completed or became dead letters: all that ended but the cancelled."""
        return self.completed + self.dead_letters

    @property
    def score(self) -> float | None:
        """The mean score; None where nothing is scored."""
        return float(self.score_sum / self.scored) if self.scored else None

    def add_ending(self, card: Scorecard) -> None:
        """Count an ended evaluation."""
        match card.status:
            case "completed":
                self.completed += 1
                self.passed += card.verdict == "passed"
                if card.score is not None:
                    self.scored += 1
                    self.score_sum = EXACT.add(self.score_sum, exact(card.score))
            case "failed":
                self.failed += 1
            case "timed_out":
                self.timed_out += 1
            case "cancelled":
                self.cancelled += 1

    def remove_ending(self, phase: Phase) -> None:
        """Subtract a settled evaluation that an operator has reopened."""
        if phase not in SETTLED:
            raise ValueError(f"{phase} is not settled: it can't be reopened")
        if phase is Phase.FAILED:
            self.failed -= 1
        else:
            self.timed_out -= 1

    def add_spending(self, step: ReplayStep, *, before: Phase) -> None:
        """Count the cost of an event, whatever its disposition: money spent is spent.

        A `completed` event carries its attempt's totals, which count only where no answer was recorded
        before it; a late event of a completed attempt is in those totals already.
        """
        data = step.entry.event.data
        match data:
            case p.Responded() | p.Scored():
                if step.disposition is Disposition.LATE and step.phase is Phase.COMPLETED:
                    return
                if isinstance(data, p.Responded) and data.cached:
                    return
            case p.Completed():
                if before is Phase.RESPONDED or step.disposition is not Disposition.APPLIED:
                    return
            case _:
                return
        self.tokens += data.usage.total
        self.cost_usd = EXACT.add(self.cost_usd, exact(data.cost_usd))


counters_of: Callable[[Progress], tuple[int | Decimal, ...]] = attrgetter(
    *(f.name for f in fields(Progress))
)
"""The counters in the order of their columns; `astuple` would copy each of them, deeply."""
_COUNTERS = len(fields(Progress))


def with_progress(row: Sequence[Any]) -> tuple[Any, ...]:
    """Replace the last columns of a row, those of the counters in their order, by their `Progress`."""
    return *row[:-_COUNTERS], Progress(*row[-_COUNTERS:])
