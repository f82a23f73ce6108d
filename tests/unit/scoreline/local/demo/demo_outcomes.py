"""Outcomes of the demo for its tests."""

from dataclasses import replace

from projections.folds.progress import Progress
from projections.queries.batches import BatchSnapshot
from projections.verification.verify import VerificationResult
from scoreline.local.demo.executor_kill import KilledExecutor
from scoreline.local.demo.outcome import (
    Outcome,
    TargetResult,
)
from scoreline.reports.export_record import Record
from tests.builders import START

KILLED = KilledExecutor("executor 1", "demo-1-aaaa", 4242, 140, ("demo.00000007",))


def record(place: int, *, passed: bool, reason: str = "", target: str = "a") -> Record:
    return Record(
        f"e-{target}-{place}", str(place), 0, target, "{input}", 1, "completed",
        "passed" if passed else "failed", passed, float(passed), (), reason, "", "", "", None,
        (), {}, None, 1, 0, None, None, False, 0.0, 0.0, None, False, START,
    )  # fmt: skip


def outcome(**changes: object) -> Outcome:
    snapshot = BatchSnapshot(
        "demo", "submitted", "demo", "default", "questions", "completed", "", None, START, None, START,
        START, progress=Progress(total=400, completed=400, passed=110),
    )  # fmt: skip
    targets = [TargetResult("a", 200, 45, 45), TargetResult("b", 200, 65, 65)]
    good = Outcome(
        snapshot, targets, [record(1, passed=False)], VerificationResult("demo", 400, 2_008),
        verified_in=0.1, killed=KILLED, again=1, seconds=15.04,
    )  # fmt: skip
    return replace(good, **changes)  # type: ignore[arg-type]  # whatever a test wants to change
