"""A fold of pairs of evaluations into the comparison of two batches; keeps the first flips. Pure."""

from dataclasses import dataclass, field
from typing import NamedTuple

from projections.queries.export import ComparedPair
from scoreline.reports.compare_statistics import RunningMean
from scoreline.reports.pass_rate import PassRate


class Flip(NamedTuple):
    """A case whose verdict changed."""

    case_id: str
    place: int
    repetition: int
    left_id: str
    right_id: str
    left_score: float | None
    right_score: float | None


@dataclass(slots=True)
class Side:
    """The counters of one batch."""

    is_scored: bool = True
    """Whether the batch has an evaluator."""
    total: int = 0
    only_here: int = 0
    """Evaluations without a counterpart in the other batch."""
    ended: int = 0
    passed: int = 0
    dead_letters: int = 0
    scores: RunningMean = field(default_factory=RunningMean)

    @property
    def pass_rate(self) -> PassRate:
        """The pass rate of the compared evaluations."""
        return PassRate(self.passed, self.ended, self.total, self.is_scored)

    def add(self, outcome: str | None, score: float | None) -> None:
        """Count an evaluation."""
        self.total += 1
        self.ended += outcome is not None
        self.passed += outcome == "passed"
        self.dead_letters += outcome == "dead_letter"
        if score is not None:
            self.scores.add(score)


@dataclass(slots=True)
class BatchComparison:
    """The results of two batches, counted pair by pair."""

    limit: int
    left: Side = field(default_factory=Side)
    right: Side = field(default_factory=Side)
    both_passed: int = 0
    both_failed: int = 0
    newly_failing: int = 0
    newly_passing: int = 0
    unjudged: int = 0
    """Pairs of which at least one has not ended, or has no evaluator."""
    lost: int = 0
    """Newly failing pairs without a verdict in the second batch: dead letters, or cancelled."""
    score_differences: RunningMean = field(default_factory=RunningMean)
    failing: list[Flip] = field(default_factory=list)
    passing: list[Flip] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """Pairs that were added, complete or with one side missing."""
        return self.left.total + self.right.only_here

    @property
    def judged(self) -> int:
        """Pairs with a verdict on both sides."""
        return self.both_passed + self.both_failed + self.newly_failing + self.newly_passing

    def add(self, pair: ComparedPair) -> None:
        """Add a pair."""
        if pair.left_id is not None:
            self.left.add(pair.left_outcome, pair.left_score)
        if pair.right_id is not None:
            self.right.add(pair.right_outcome, pair.right_score)
        if pair.left_id is None:
            self.right.only_here += 1
        elif pair.right_id is None:
            self.left.only_here += 1
        else:
            self._add_outcomes(pair, pair.left_id, pair.right_id)
            if pair.left_score is not None and pair.right_score is not None:
                self.score_differences.add(pair.right_score - pair.left_score)

    def _add_outcomes(self, pair: ComparedPair, left_id: str, right_id: str) -> None:
        """Count the outcomes of a pair: dead letters and cancelled evaluations did not pass."""
        match self._outcomes(pair):
            case None, _:
                self.unjudged += 1
            case _, None:
                self.unjudged += 1
            case "passed", "passed":
                self.both_passed += 1
            case "passed", right:
                self.newly_failing += 1
                self.lost += right != "failed"
                self._keep(self.failing, pair, left_id, right_id)
            case _, "passed":
                self.newly_passing += 1
                self._keep(self.passing, pair, left_id, right_id)
            case _:
                self.both_failed += 1

    def _outcomes(self, pair: ComparedPair) -> tuple[str | None, str | None]:
        """Return both outcomes; None on a side whose batch has no evaluator."""
        return (
            pair.left_outcome if self.left.is_scored else None,
            pair.right_outcome if self.right.is_scored else None,
        )

    def _keep(self, flips: list[Flip], pair: ComparedPair, left_id: str, right_id: str) -> None:
        if len(flips) < self.limit:
            key = pair.case_id, pair.place, pair.repetition
            flips.append(Flip(*key, left_id, right_id, pair.left_score, pair.right_score))
