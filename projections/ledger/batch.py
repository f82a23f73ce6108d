"""A batch: as it is submitted, and as the ledger stores it with its budget and its progress."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from domain.batch_spec import BatchSpec
from domain.ids import FLEET
from projections.folds.progress import Progress, with_progress
from projections.folds.scorecard import ZERO


class Budget(NamedTuple):
    """What a batch may cost, and what it has cost: all that was paid, whatever came of it."""

    max_cost_usd: Decimal | None = None
    max_tokens: int | None = None
    spent_usd: Decimal = ZERO
    spent_tokens: int = 0
    next_usd: Decimal = ZERO
    """What the next call may cost, where the budget had no room for it."""
    next_tokens: int = 0
    unrecorded_usd: Decimal = ZERO
    """The part of the spend that no event records: calls whose cost never became known."""
    unrecorded_tokens: int = 0

    @property
    def is_limited(self) -> bool:
        """Whether it limits cost or tokens."""
        return self.max_cost_usd is not None or self.max_tokens is not None


@dataclass(frozen=True, slots=True)
class NewBatch:
    """A batch as it is submitted; `Batch` is its stored form."""

    batch_id: str
    spec: BatchSpec
    project: str = "default"
    dataset: str = ""
    tags: tuple[str, ...] = ()
    """Labels of the batch."""
    priority: int = 1
    max_duration: timedelta | None = None
    submitted_by: str = "user"
    max_cost_usd: Decimal | None = None
    max_tokens: int | None = None
    traced: float = 0.0
    """The share of its evaluations that are traced, where spans are recorded."""
    run_id: str = FLEET
    """The local run that serves it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that was submitted, as the ledger has it."""

    batch_id: str
    month: date
    name: str
    project: str
    priority: int
    spec: bytes
    state: str
    reason: str
    published: int
    published_to: str
    deadline: datetime | None
    finished: bool
    accepted_at: datetime | None = None
    run_id: str = FLEET
    """The local run that serves it; each run replaces it."""
    budget: Budget = field(default_factory=Budget)
    progress: Progress = field(default_factory=Progress)

    @property
    def allowed_seconds(self) -> float:
        """Its time limit in seconds; 0 without a limit."""
        if self.deadline is None or self.accepted_at is None:
            return 0.0
        return max(0.0, (self.deadline - self.accepted_at).total_seconds())

    @property
    def in_flight(self) -> int:
        """Evaluations within the windows so far that have not ended."""
        return max(0, self.published - self.progress.ended)


_LIMITS = len(Budget._fields)


def with_totals(row: Sequence[Any]) -> tuple[Any, ...]:
    """Replace the last columns of a row, those of `Budget` and then of `Progress`, by one value each."""
    *columns, progress = with_progress(row)
    return *columns[:-_LIMITS], Budget(*columns[-_LIMITS:]), progress
