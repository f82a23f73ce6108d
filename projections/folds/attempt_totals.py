"""Totals of an attempt's `responded` and `scored` events, for a `completed` event that omits them.

Executors repeat answer and scores in `completed`, which is therefore authoritative for every field it
carries, zeros included. Fields that another producer omits are filled in from the events that were applied
in the same attempt. Pure.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from math import fsum
from typing import NamedTuple

from pydantic_core import from_json, to_json

from eventlog import payloads as p
from eventlog.events import Event
from projections.folds.amounts import EXACT, ZERO, exact

FILLED_IN = frozenset({"score", "scores", "usage", "cost_usd", "latency_ms"})
"""Fields of `completed` that earlier events of the attempt may supply."""


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

    def add(self, event: Event) -> None:
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
