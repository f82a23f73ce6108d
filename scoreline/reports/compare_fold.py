"""Two batches folded into their comparison, pair by pair: only the first flips are kept. Pure."""

from dataclasses import dataclass, field
from typing import NamedTuple

from projections.queries.export import ComparedPair
from scoreline.reports.compare_statistics import RunningMean
from scoreline.reports.pass_rate import PassRate


class Flip(NamedTuple):
    """A case whose verdict is another now."""

    case_id: str
    place: int
    repetition: int
    left_id: str
    right_id: str
    left_score: float | None
    right_score: float | None


@dataclass(slots=True)
class Side:
    """What is counted of one batch."""

    is_scored: bool = True
    """Whether the batch has an evaluator."""
    total: int = 0
    only_here: int = 0
    """Evaluations that have no like in the other."""
    ended: int = 0
    passed: int = 0
    dead_letters: int = 0
    scores: RunningMean = field(default_factory=RunningMean)

    @property
    def pass_rate(self) -> PassRate:
        """The pass rate of what was compared."""
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
    """What two batches have come to, side by side."""

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
    """Of the newly failing, those that have no verdict any more: dead letters, or cancelled."""
    score_differences: RunningMean = field(default_factory=RunningMean)
    failing: list[Flip] = field(default_factory=list)
    passing: list[Flip] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """Pairs that were taken in, whole or half."""
        return self.left.total + self.right.only_here

    @property
    def judged(self) -> int:
        """Pairs of which both have passed or not passed."""
        return self.both_passed + self.both_failed + self.newly_failing + self.newly_passing

    def add(self, pair: ComparedPair) -> None:
        """Take a pair in."""
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
        """Count what has become of a pair: dead letters and cancelled evaluations did not pass."""
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
        """Without an evaluator nothing was judged, whatever the scorecard has."""
        return (
            pair.left_outcome if self.left.is_scored else None,
            pair.right_outcome if self.right.is_scored else None,
        )

    def _keep(self, flips: list[Flip], pair: ComparedPair, left_id: str, right_id: str) -> None:
        if len(flips) < self.limit:
            where = pair.case_id, pair.place, pair.repetition
            flips.append(Flip(*where, left_id, right_id, pair.left_score, pair.right_score))
