"""The scorecard of an evaluation, folded from the event that ended it and its attempt's totals. Pure.

Executors repeat answer and scores in `completed`, which is therefore authoritative for every field it
carries, zeros included. Fields that another producer omits are filled in from the `responded` and `scored`
events that were applied in the same attempt. Money and scores are exact decimals: a rounded sum would
depend on the order of its parts.
"""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal
from functools import lru_cache
from math import fsum
from typing import NamedTuple

from pydantic_core import from_json, to_json

from eventlog import events as e
from eventlog import payloads as p

ZERO = Decimal(0)
EXACT = Context(prec=400)
"""Enough digits for the sum of any two floats."""
FILLED_IN = frozenset({"score", "scores", "usage", "cost_usd", "latency_ms"})
"""Fields of `completed` that earlier events of the attempt may supply."""


@lru_cache(maxsize=4_096)
def exact(amount: float) -> Decimal:
    """Convert a float to the shortest decimal that represents it."""
    return Decimal(repr(amount)) if amount else ZERO


class Totals(NamedTuple):
    """Columns of a scorecard that add up over an attempt."""

    score: float | None = None
    scores: bytes = b"[]"
    tokens: int = 0
    cost_usd: Decimal = ZERO
    latency_ms: float = 0.0


@dataclass(slots=True)
class AttemptTotals:
    """Applied answer and scores of one attempt."""

    scores: dict[str, p.Score] = field(default_factory=dict)
    """The newest of each evaluator."""
    tokens: int = 0
    cost_usd: Decimal = ZERO
    latency_ms: float = 0.0
    is_empty: bool = True

    def add(self, event: e.Event) -> None:
        """Add an applied event; other types than `responded` and `scored` add nothing."""
        match event.data:
            case p.Responded(latency_ms=latency_ms) as paid:
                self.latency_ms = latency_ms
            case p.Scored(evaluator=evaluator) as paid:
                self.scores[evaluator] = paid
            case _:
                return
        self.is_empty = False
        self.tokens += paid.usage.total
        self.cost_usd = EXACT.add(self.cost_usd, exact(paid.cost_usd))

    def of_completed(self, result: p.Completed, body: bytes) -> Totals:
        """Take each field from `completed` where it has it, else from the events before it."""
        own = Totals(
            result.score,
            to_json(result.scores) if result.scores else b"[]",
            result.usage.total,
            exact(result.cost_usd),
            result.latency_ms,
        )
        if self.is_empty or not (missing := left_out(result, body)):
            return own
        return Totals(
            self._mean() if missing >= {"score", "scores"} else own.score,
            self._packed() if "scores" in missing else own.scores,
            self.tokens if "usage" in missing else own.tokens,
            self.cost_usd if "cost_usd" in missing else own.cost_usd,
            self.latency_ms if "latency_ms" in missing else own.latency_ms,
        )

    def _mean(self) -> float | None:
        if not self.scores:
            return None
        return fsum(one.score for one in self.scores.values()) / len(self.scores)

    def _packed(self) -> bytes:
        return to_json(tuple(self.scores.values())) if self.scores else b"[]"


def left_out(result: p.Completed, body: bytes) -> frozenset[str]:
    """Return the fields that a `completed` omits; the body is parsed only where one may be missing."""
    complete = result.scores and result.usage.total and result.cost_usd and result.latency_ms
    if complete and result.score is not None:
        return frozenset()
    data = from_json(body).get("data")
    return FILLED_IN - data.keys() if isinstance(data, dict) else FILLED_IN


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


NO_EVENTS = AttemptTotals()


def scorecard(
    event: e.Event, *, bridged: bool, body: bytes = b"", totals: AttemptTotals = NO_EVENTS
) -> Scorecard:
    """Fold the event that ended an evaluation into its scorecard; `totals` are those of its attempt."""
    match event.data:
        case p.Completed() as result:
            return _completed(event, result, totals.of_completed(result, body), bridged=bridged)
        case p.Failed() as failed:
            return _failed(event, failed, bridged=bridged)
        case p.TimedOut(error=error):
            return _ended(event, bridged=bridged, error=to_json(error) if error else None)
        case _:
            return _ended(event, bridged=bridged, error=None)


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
