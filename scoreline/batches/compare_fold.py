"""Two batches folded into their comparison, pair by pair: only the first flips are kept. Pure."""

from dataclasses import dataclass, field
from typing import NamedTuple

from projections.streams import Pair
from scoreline.batches.compare_statistics import RunningMean


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

    total: int = 0
    only_here: int = 0
    """Evaluations that have no like in the other."""
    judged: int = 0
    passed: int = 0
    scores: RunningMean = field(default_factory=RunningMean)

    def add(self, verdict: str | None, score: float | None) -> None:
        """Count an evaluation."""
        self.total += 1
        self.judged += verdict is not None
        self.passed += verdict == "passed"
        if score is not None:
            self.scores.add(score)


@dataclass(slots=True)
class Comparison:
    """What two batches have come to, side by side."""

    limit: int
    left: Side = field(default_factory=Side)
    right: Side = field(default_factory=Side)
    both_passed: int = 0
    both_failed: int = 0
    newly_failing: int = 0
    newly_passing: int = 0
    unjudged: int = 0
    """Pairs of which at least one has no verdict: given up, cancelled, or not ended."""
    lost: int = 0
    """Of those, what had passed and has no verdict any more."""
    score_differences: RunningMean = field(default_factory=RunningMean)
    failing: list[Flip] = field(default_factory=list)
    passing: list[Flip] = field(default_factory=list)

    @property
    def seen(self) -> int:
        """Pairs that were taken in, whole or half."""
        return self.left.total + self.right.only_here

    @property
    def judged(self) -> int:
        """Pairs that have two verdicts."""
        return self.both_passed + self.both_failed + self.newly_failing + self.newly_passing

    def add(self, pair: Pair) -> None:
        """Take a pair in."""
        if pair.left_id is not None:
            self.left.add(pair.left_verdict, pair.left_score)
        if pair.right_id is not None:
            self.right.add(pair.right_verdict, pair.right_score)
        if pair.left_id is None:
            self.right.only_here += 1
        elif pair.right_id is None:
            self.left.only_here += 1
        else:
            self._add_verdicts(pair, pair.left_id, pair.right_id)
            if pair.left_score is not None and pair.right_score is not None:
                self.score_differences.add(pair.right_score - pair.left_score)

    def _add_verdicts(self, pair: Pair, left_id: str, right_id: str) -> None:
        match pair.left_verdict, pair.right_verdict:
            case "passed", "passed":
                self.both_passed += 1
            case "failed", "failed":
                self.both_failed += 1
            case "passed", "failed":
                self.newly_failing += 1
                self._keep(self.failing, pair, left_id, right_id)
            case "failed", "passed":
                self.newly_passing += 1
                self._keep(self.passing, pair, left_id, right_id)
            case left, _:
                self.unjudged += 1
                self.lost += left == "passed"

    def _keep(self, flips: list[Flip], pair: Pair, left_id: str, right_id: str) -> None:
        if len(flips) < self.limit:
            where = pair.case_id, pair.place, pair.repetition
            flips.append(Flip(*where, left_id, right_id, pair.left_score, pair.right_score))
