"""The scorecard: what an evaluation came to, folded from the event that ended it."""

from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from pydantic_core import to_json

from eventlog import events as e
from eventlog import payloads as p


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


def scorecard(event: e.Event, *, bridged: bool) -> Scorecard:
    """Fold the event that ended an evaluation into its scorecard."""
    match event.data:
        case p.Completed() as result:
            return _completed(event, result, bridged=bridged)
        case p.Failed(error=error) | p.TimedOut(error=error):
            return _ended(event, bridged=bridged, error=to_json(error) if error else None)
        case _:
            return _ended(event, bridged=bridged, error=None)


def _completed(event: e.Event, result: p.Completed, *, bridged: bool) -> Scorecard:
    return Scorecard(
        evaluation_id=event.evaluation_id,
        batch_id=event.batch_id,
        attempt=event.attempt,
        status="completed",
        verdict=result.verdict,
        score=result.score,
        scores=to_json(result.scores) if result.scores else b"[]",
        tokens=result.usage.total,
        cost_usd=exact(result.cost_usd),
        latency_ms=result.latency_ms,
        exit_code=result.exit_code,
        error=None,
        bridged=bridged,
        ended_at=event.occurred_at,
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


ZERO = Decimal(0)


@lru_cache(maxsize=4_096)
def exact(amount: float) -> Decimal:
    """Take a float for the decimal it was written as, so that sums do not depend on their order."""
    return Decimal(repr(amount)) if amount else ZERO
