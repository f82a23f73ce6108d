"""One exported evaluation, the same for every format. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from projections.queries.export import ExportRow
from scoreline.reports.faults import WhyEnded, why_ended
from scoreline.reports.labels import VariantLabel
from scoreline.reports.rendered_prompt import RecordedCase, rendered_prompt
from scoreline.submit.datasets.cases import tags_of
from scoreline.submit.datasets.errors import Unfit


class Judgement(NamedTuple):
    """The score, verdict and reason of one evaluator."""

    evaluator: str
    score: float
    passed: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class Record:
    """A row of an export, in the order of its columns."""

    evaluation_id: str
    case_id: str
    variant: int
    target: str | None
    prompt: str | None
    repetition: int
    status: str
    verdict: str | None
    passed: bool | None
    score: float | None
    scores: tuple[Judgement, ...]
    reason: str
    output: str | None
    input: JsonValue
    expected: JsonValue
    rendered_prompt: str | None
    """The rendered template; None where a field of it is not on record."""
    tags: tuple[str, ...]
    metadata: dict[str, JsonValue]
    """All other columns of the case in the dataset."""
    error: WhyEnded | None
    attempts: int
    tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached: bool
    """Whether the answer was taken from an earlier batch."""
    cost_usd: float | None
    latency_ms: float | None
    exit_code: int | None
    bridged: bool
    ended_at: datetime | None


def make_record(row: ExportRow, labels: Sequence[VariantLabel], *, is_scored: bool = True) -> Record:
    """Return the record of a row; its verdict is None where the batch has no evaluator."""
    verdict = row.verdict if is_scored else None
    case = _case(row)
    label = labels[row.variant] if row.variant < len(labels) else None
    scores = tuple(_judgement(score) for score in from_json(row.scores or "[]"))
    return Record(
        evaluation_id=row.evaluation_id,
        case_id=row.case_id,
        variant=row.variant,
        target=label.target if label else None,
        prompt=label.prompt if label else None,
        repetition=row.repetition,
        status=row.status,
        verdict=verdict,
        passed=None if verdict is None else verdict == "passed",
        score=row.score,
        scores=scores,
        reason=_reason(scores),
        output=row.output,
        input=case.input,
        expected=case.expected,
        rendered_prompt=_prompt(row, case, label),
        tags=_tags(case),
        metadata=case.metadata,
        error=why_ended(row.status, row.error, row.closing),
        attempts=row.attempts,
        tokens=row.tokens,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        cached=row.cached,
        cost_usd=None if row.cost_usd is None else float(row.cost_usd),
        latency_ms=row.latency_ms,
        exit_code=row.exit_code,
        bridged=row.bridged,
        ended_at=row.ended_at,
    )


def _reason(scores: Sequence[Judgement]) -> str:
    """Return the reasons of the evaluators that failed the answer; of all where none of those has one."""
    reasons = [each for each in scores if each.reason]
    failed = [each for each in reasons if each.passed is False]
    return "; ".join(f"{each.evaluator}: {each.reason}" for each in failed or reasons)


def _case(row: ExportRow) -> RecordedCase:
    metadata = from_json(row.metadata or "{}")
    metadata = metadata if isinstance(metadata, dict) else {}
    return RecordedCase(row.case_id, _value(row.input), _value(row.expected), metadata)


def _prompt(row: ExportRow, case: RecordedCase, label: VariantLabel | None) -> str | None:
    stored: dict[str, JsonValue] = from_json(row.stored or "{}")
    return rendered_prompt(label.prompt, case, stored) if label else None


def _tags(case: RecordedCase) -> tuple[str, ...]:
    try:
        return tags_of(case.metadata.get("tags"))
    except Unfit:
        return ()


def as_text(value: JsonValue) -> str | None:
    """Return a value for a cell: text unchanged, other values as JSON."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _judgement(score: dict[str, Any]) -> Judgement:
    return Judgement(score["evaluator"], score["score"], score.get("passed"), score.get("reason", ""))


def _value(text: str | None) -> JsonValue:
    return None if text is None else from_json(text)
