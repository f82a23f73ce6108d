"""The results of a batch: pass rates by variant and evaluator, first failures, dead letters by reason."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from domain.batch_spec import unpack
from projections.database.connection import Connection
from projections.queries.batches import BatchSnapshot, VariantResult, variant_results
from projections.queries.export import export_rows
from projections.queries.results import (
    DeadLetterGroup,
    EvaluatorResult,
    dead_letter_groups,
    evaluator_results,
    first_failed,
)
from scoreline.reports.export_record import Record, make_record
from scoreline.reports.faults import why_ended
from scoreline.reports.labels import VariantLabel, variant_labels
from scoreline.reports.pass_rate import PassRate, is_scored, variant_pass_rate

FAILED_SHOWN = 10


@dataclass(frozen=True, slots=True)
class ReportRow:
    """The results of one variant, or of one evaluator on it."""

    label: VariantLabel | None
    variant: int
    evaluator: str
    """Empty for the row of all evaluators together."""
    rate: PassRate
    score: float | None
    no_verdict: int
    """Evaluations that ended without a score: dead letters, and cancelled ones."""
    decides: bool = True
    """Whether the evaluator decides pass or fail; one that only scores has no pass rate."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a batch."""

    rows: tuple[ReportRow, ...]
    failed: tuple[Record, ...]
    """The first evaluations whose answer did not pass."""
    dead_letters: tuple[DeadLetterGroup, ...]


async def read_report(conn: Connection, snapshot: BatchSnapshot) -> Report:
    """Read the results of a batch."""
    batch_id, labels = snapshot.batch_id, variant_labels(snapshot.spec)
    variants = await variant_results(conn, batch_id)
    by_evaluator = await evaluator_results(conn, batch_id)
    wrong = await first_failed(conn, batch_id, limit=FAILED_SHOWN) if is_scored(snapshot.spec) else []
    failed = (
        [make_record(row, labels) async for row in export_rows(conn, batch_id, only=wrong)] if wrong else []
    )
    groups = await dead_letter_groups(conn, batch_id) if snapshot.progress.dead_letters else []
    rows = report_rows(variants, by_evaluator, labels, snapshot.spec)
    return Report(tuple(rows), tuple(failed), tuple(groups))


def report_rows(
    variants: Sequence[VariantResult],
    by_evaluator: Sequence[EvaluatorResult],
    labels: Sequence[VariantLabel],
    spec: str | None,
) -> Iterator[ReportRow]:
    """Return a row for each variant, and one for each evaluator where there are several.

    The evaluators are those of the spec, in its order: one that failed on every case has no scores, and
    still has a row.
    """
    named = {label.number: label for label in labels}
    listed = [each.name for each in unpack(spec).evaluators] if spec is not None else []
    for variant in variants:
        by_name = {each.evaluator: each for each in by_evaluator if each.variant == variant.variant}
        names = list(dict.fromkeys([*listed, *by_name]))
        rate = variant_pass_rate(variant, is_scored=is_scored(spec))
        label = named.get(variant.variant)
        missing = variant.ended - variant.completed
        alone = names[0] if len(names) == 1 else ""
        yield ReportRow(label, variant.variant, alone, rate, variant.score, missing)
        for name in names if len(names) > 1 else ():
            result = by_name.get(name) or EvaluatorResult(variant.variant, name, 0, 0, 0, None)
            yield _evaluator_row(label, variant, result)


def _evaluator_row(
    label: VariantLabel | None, variant: VariantResult, result: EvaluatorResult
) -> ReportRow:
    """Return the row of one evaluator over all ended evaluations, dead letters included."""
    return ReportRow(
        label,
        variant.variant,
        result.evaluator,
        PassRate(result.passed, variant.ended, variant.total),
        result.score,
        variant.ended - result.scored,
        decides=result.decided > 0 or not result.scored,
    )


def report_document(report: Report) -> dict[str, Any]:
    """Return results as JSON."""
    return {
        "results": [_row_document(row) for row in report.rows],
        "failed_first": [_failed_document(record) for record in report.failed],
        "dead_letter_reasons": [_group_document(group) for group in report.dead_letters],
    }


def _row_document(row: ReportRow) -> dict[str, Any]:
    return {
        "variant": row.variant,
        "target": row.label.target if row.label else None,
        "prompt": row.label.prompt if row.label else None,
        "evaluator": row.evaluator or None,
        "ended": row.rate.ended,
        "passed": row.rate.passed if row.decides and row.rate.is_scored else None,
        "pass_rate": row.rate.value if row.decides else None,
        "pass_rate_interval": row.rate.interval if row.decides else None,
        "score": row.score,
        "no_verdict": row.no_verdict,
    }


def _failed_document(record: Record) -> dict[str, Any]:
    return {
        "evaluation_id": record.evaluation_id,
        "case_id": record.case_id,
        "variant": record.variant,
        "repetition": record.repetition,
        "input": record.input,
        "expected": record.expected,
        "output": record.output,
        "reason": record.reason,
    }


def _group_document(group: DeadLetterGroup) -> dict[str, Any]:
    fault = why_ended(group.status, group.error, group.closing)
    message = fault.message if fault else ""
    return {"kind": group.kind, "count": group.count_, "message": message, "example": group.example}
