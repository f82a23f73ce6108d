"""The result of a demo, compared with the published one. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from projections.queries.batches import BatchSnapshot
from projections.verification.verify import VerificationResult
from scoreline.local.demo.executor_kill import KilledExecutor
from scoreline.reports.export_record import Record


@dataclass(frozen=True, slots=True)
class TargetResult:
    """The result of one target, beside the published one."""

    target: str
    total: int
    passed: int
    published: int
    """How many of the same answers are correct by the publication."""
    differing: int = 0
    """How many verdicts differ from the published ones."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a demo."""

    snapshot: BatchSnapshot
    targets: Sequence[TargetResult]
    failed: Sequence[Record]
    """A few of those that failed, with their reasons."""
    verified: VerificationResult
    verified_in: float
    killed: KilledExecutor | None
    again: int
    """How many evaluations took more than one attempt."""
    seconds: float


def target_results(
    records: Sequence[Record], published: Mapping[str, Mapping[str, bool]]
) -> list[TargetResult]:
    """Compare the results of each target with the published ones."""
    return [_result(target, records, verdicts) for target, verdicts in published.items()]


def _result(target: str, records: Sequence[Record], verdicts: Mapping[str, bool]) -> TargetResult:
    own = [record for record in records if record.target == target]
    return TargetResult(
        target,
        total=len(own),
        passed=sum(record.passed is True for record in own),
        published=sum(verdicts.values()),
        differing=sum(record.passed is not verdicts.get(record.case_id) for record in own),
    )


def some_failed(records: Sequence[Record], *, of_each: int = 2) -> list[Record]:
    """Choose a few that failed: wrong numbers, and answers in which there is no number to compare."""
    failed = [record for record in records if record.passed is False]
    wrong = [record for record in failed if "does not match" not in record.reason]
    without = [record for record in failed if "does not match" in record.reason]
    return wrong[:of_each] + without[:of_each]


def complaints(outcome: Outcome) -> Iterator[str]:
    """List all results that are not as expected."""
    progress = outcome.snapshot.progress
    if progress.completed != progress.total:
        yield f"{progress.completed} of {progress.total} evaluations completed"
    for each in outcome.targets:
        if each.passed != each.published or each.differing:
            yield (
                f"{each.target}: {each.passed} of {each.total} passed, {each.published} must pass; "
                f"{each.differing} verdicts are not the authors'"
            )
    if outcome.verified.differing:
        yield f"the tables differ from the log: {outcome.verified.differences[0]}"
    if outcome.verified.open:
        yield f"{outcome.verified.open} evaluations have not ended"


def document(outcome: Outcome) -> dict[str, Any]:
    """Build the JSON document of the result."""
    killed = outcome.killed
    return {
        "batch_id": outcome.snapshot.batch_id,
        "targets": [
            {
                "target": each.target,
                "passed": each.passed,
                "total": each.total,
                "published": each.published,
                "differing": each.differing,
            }
            for each in outcome.targets
        ],
        "killed": killed
        and {
            "executor": killed.instance_id,
            "pid": killed.pid,
            "done": killed.done,
            "in_hand": list(killed.claimed),
        },
        "retried": outcome.again,
        "verified": not outcome.verified.differing,
        "events": outcome.verified.events,
        "seconds": round(outcome.seconds, 1),
        "problems": list(complaints(outcome)),
    }
