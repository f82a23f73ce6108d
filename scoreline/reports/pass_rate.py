"""The pass rate: one definition for screens, the gate, exports, comparisons and `--json`. Pure.

The pass rate is passed ÷ ended evaluations. Dead letters (failed, timed out) and cancelled evaluations have
ended and did not pass, so they lower it. Once a batch is over every evaluation has ended, and the pass rate
is passed ÷ all evaluations; before that it is a rate so far and is labelled as such. A batch without an
evaluator records answers and judges none: it is not scored and has no pass rate.

Dashboards compute the same in SQL: `pass_rate` and `is_scored` in `0014_pass_rate.sql`.
"""

from dataclasses import dataclass
from typing import Self

from pydantic_core import from_json

from projections.folds.progress import Progress
from projections.queries.batches import BatchSnapshot, ListedBatch, VariantResult
from scoreline.reports.compare_statistics import Interval, wilson

NOT_SCORED = "not scored"


@dataclass(frozen=True, slots=True)
class PassRate:
    """The share of ended evaluations that passed."""

    passed: int
    ended: int
    total: int
    is_scored: bool = True
    """Whether the batch has an evaluator: without one there are no verdicts."""

    @classmethod
    def of(cls, progress: Progress, *, is_scored: bool) -> Self:
        """Return the pass rate of a batch by its counters."""
        return cls(progress.passed, progress.ended, progress.total, is_scored)

    @property
    def value(self) -> float | None:
        """The rate; None where nothing has ended or nothing is scored."""
        return self.passed / self.ended if self.is_scored and self.ended else None

    @property
    def interval(self) -> Interval | None:
        """The 95 % Wilson interval of the rate; None where there is no rate."""
        return wilson(self.passed, self.ended) if self.is_scored else None

    @property
    def is_final(self) -> bool:
        """Whether every evaluation has ended."""
        return self.ended >= self.total

    def __str__(self) -> str:
        if not self.is_scored:
            return NOT_SCORED
        return "-" if self.value is None else f"{self.value:.1%}"

    def words(self) -> str:
        """Return the rate as screens show it; empty where nothing has ended yet."""
        if self.value is None:
            return "" if self.is_scored else NOT_SCORED
        return f"{self} passed" if self.is_final else f"{self} passed so far"


def is_scored(spec: str | None) -> bool:
    """Whether a batch has an evaluator; external batches count as scored, by their producers."""
    return spec is None or bool(from_json(spec).get("evaluators"))


def batch_pass_rate(snapshot: BatchSnapshot) -> PassRate:
    """Return the pass rate of a batch."""
    return PassRate.of(snapshot.progress, is_scored=is_scored(snapshot.spec))


def listed_pass_rate(batch: ListedBatch) -> PassRate:
    """Return the pass rate of a batch in a list."""
    return PassRate.of(batch.progress, is_scored=batch.is_scored)


def variant_pass_rate(result: VariantResult, *, is_scored: bool) -> PassRate:
    """Return the pass rate of one variant."""
    return PassRate(result.passed, result.ended, result.total, is_scored)
