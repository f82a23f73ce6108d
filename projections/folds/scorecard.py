"""The scorecard of an evaluation, folded from the event that ended it."""

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from pydantic_core import to_json

from eventlog import events as e
from eventlog import payloads as p
from projections.folds.amounts import ZERO, exact
from projections.folds.attempt_totals import AttemptTotals, Totals


class Scorecard(NamedTuple):
    """One row of `scorecards`, in the order of its columns."""

    evaluation_id: str
    batch_id: str
    attempt: int
    status: str
    verdict: str | None
    score: float | None
    scores: bytes
    tokens: int
    cost_usd: Decimal
    latency_ms: float
    exit_code: int | None
    error: bytes | None
    bridged: bool
    ended_at: datetime


def scorecard(event: e.Event, *, bridged: bool, totals: Totals | None = None) -> Scorecard:
    """Fold the event that ended an evaluation into its scorecard; `totals` are its attempt's."""
    match event.data:
        case p.Completed() as result:
            return _completed(event, result, totals or NO_EVENTS.of_completed(result, b""), bridged=bridged)
        case p.Failed() as failed:
            return _failed(event, failed, bridged=bridged)
        case p.TimedOut(error=error):
            return _ended(event, bridged=bridged, error=to_json(error) if error else None)
        case _:
            return _ended(event, bridged=bridged, error=None)


NO_EVENTS = AttemptTotals()


def _completed(event: e.Event, result: p.Completed, totals: Totals, *, bridged: bool) -> Scorecard:
    return Scorecard(
        evaluation_id=event.evaluation_id,
        batch_id=event.batch_id,
        attempt=event.attempt,
        status="completed",
        verdict=result.verdict,
        score=totals.score,
        scores=totals.scores,
        tokens=totals.tokens,
        cost_usd=totals.cost_usd,
        latency_ms=totals.latency_ms,
        exit_code=result.exit_code,
        error=None,
        bridged=bridged,
        ended_at=event.occurred_at,
    )


def _failed(event: e.Event, failed: p.Failed, *, bridged: bool) -> Scorecard:
    """Keep the scores there are: without a verdict, for an evaluator is missing."""
    return _ended(event, bridged=bridged, error=to_json(failed.error))._replace(
        scores=to_json(failed.scores) if failed.scores else b"[]",
        tokens=failed.usage.total,
        cost_usd=exact(failed.cost_usd),
        latency_ms=failed.latency_ms,
    )


def _ended(event: e.Event, *, bridged: bool, error: bytes | None) -> Scorecard:
    return Scorecard(
        evaluation_id=event.evaluation_id,
        batch_id=event.batch_id,
        attempt=event.attempt,
        status=event.type,
        verdict=None,
        score=None,
        scores=b"[]",
        tokens=0,
        cost_usd=ZERO,
        latency_ms=0.0,
        exit_code=None,
        error=error,
        bridged=bridged,
        ended_at=event.occurred_at,
    )
