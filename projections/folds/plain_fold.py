"""The fold of a plain history, for verification at speed: equal to `refold`, or none at all.

A history is plain if it has one attempt, the first, whose events were all applied in order, and which
completed or is still open: nearly all are. `plain_fold` returns None for every other history, and where it
cannot be sure; `refold` is the definition, and judges those. So what passes here would pass there.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from eventlog import payloads as p
from eventlog.fast_decoder import FAST_TYPES, REFUSED, FastDecoder
from eventlog.lifecycle import TRANSITIONS, Phase
from projections.folds.progress import Progress
from projections.folds.scorecard import EXACT, ZERO, exact

COMPLETED = Phase.COMPLETED
NO_FRACTION = len("2026-11-16 09:30:00+00")
CACHED_BYTES = 400
"""Scores longer than this are rarely repeated."""
_SCORES: TypeAdapter[tuple[p.Score, ...]] = TypeAdapter(tuple[p.Score, ...])


class PlainLog(NamedTuple):
    """The events of an evaluation with one attempt, as one row has them."""

    types: str
    """Of its events in order, with spaces between them."""
    times: str
    """When they occurred, as PostgreSQL writes times in UTC, with commas between them."""
    bodies: bytes
    """A JSON array."""


class PlainResult(NamedTuple):
    """What a plain history folds to."""

    events: int
    phase: Phase
    owner: str | None
    card: tuple[Any, ...] | None
    """Verdict, score, scores, tokens, cost, latency and exit code of the scorecard."""
    tokens: int
    cost_usd: Decimal


class _Shape(NamedTuple):
    """What follows from the types of a plain history alone."""

    decoder: FastDecoder
    types: tuple[str, ...]
    phase: Phase
    answered: bool
    """Whether an answer was recorded: the totals of `completed` repeat what is counted already."""


@lru_cache(maxsize=512)
def _shape(types: str) -> _Shape | None:
    """Step through the lifecycle; None where it ends otherwise than in order."""
    first, *others = named = tuple(types.split(" "))
    if first != "queued" or not set(named) <= set(FAST_TYPES):
        return None
    phase: Phase | None = Phase.QUEUED
    for name in others:
        phase = TRANSITIONS[phase].get(name) if phase else None
    return _Shape(FastDecoder(named), named, phase, "responded" in named) if phase else None


def plain_fold(evaluation_id: str, batch_id: str, logged: PlainLog) -> PlainResult | None:
    """Fold an evaluation's whole log, if it is plain."""
    shape = _shape(logged.types)
    if shape is None:
        return None
    try:
        events = shape.decoder.decode(logged.bodies)
    except REFUSED:
        return None
    if not _repeats(evaluation_id, batch_id, events, logged.times.split(",")):
        return None
    card = _card(events[-1].data) if shape.phase is COMPLETED else None
    if card is None and shape.phase is COMPLETED:
        return None
    owner = events[1].data.executor if len(events) > 1 else None
    tokens, cost = (card[3], card[4]) if card and not shape.answered else _spent(shape.types, events)
    return PlainResult(len(events), shape.phase, owner, card, tokens, cost)


def _repeats(evaluation_id: str, batch_id: str, events: Sequence[Any], times: Sequence[str]) -> bool:
    """Whether the bodies repeat the columns of their rows."""
    if len(times) != len(events):
        return False
    for place, event in enumerate(events):
        if not (
            event.evaluation_id == evaluation_id
            and event.sequence == place
            and event.attempt == 1
            and event.batch_id == batch_id
            and event.occurred_at == canonical_time(times[place])
        ):
            return False
    return True


def canonical_time(written: str) -> str:
    """Turn a UTC time as PostgreSQL writes it into that of the codec, which keeps zeros at the end."""
    if len(written) > NO_FRACTION:
        return f"{written[:10]}T{written[11:-3]:0<15}Z"
    return f"{written[:10]}T{written[11:-3]}Z"


def _spent(types: Sequence[str], events: Sequence[Any]) -> tuple[int, Decimal]:
    """Add up the answers and scores that were paid for."""
    tokens, cost = 0, ZERO
    for name, event in zip(types, events, strict=True):
        if name == "scored" or (name == "responded" and not event.data.cached):
            tokens += event.data.usage.input_tokens + event.data.usage.output_tokens
            cost = EXACT.add(cost, exact(event.data.cost_usd))
    return tokens, cost


def _card(result: Any) -> tuple[Any, ...] | None:  # noqa: ANN401 - a structure that is made at run time
    """Lay out the result of a `completed`, which omits nothing that earlier events could supply."""
    written = bytes(result.scores)
    scores = _normalized(written) if len(written) > CACHED_BYTES else _normalized_once(written)
    if scores is None:
        return None
    tokens = result.usage.input_tokens + result.usage.output_tokens
    cost = exact(result.cost_usd)
    return (result.verdict, result.score, scores, tokens, cost, result.latency_ms, result.exit_code)


def _normalized(written: bytes) -> bytes | None:
    """Return scores as a scorecard has them; None if the codec would refuse them."""
    try:
        scores = _SCORES.validate_json(written)
    except ValidationError:
        return None
    return to_json(scores) if scores else b"[]"


_normalized_once = lru_cache(maxsize=1_024)(_normalized)


def add_share(progress: Progress, folded: PlainResult) -> None:
    """Add an evaluation's share to the counters of its batch."""
    progress.total += 1
    progress.tokens += folded.tokens
    progress.cost_usd = EXACT.add(progress.cost_usd, folded.cost_usd)
    if folded.card is None:
        return
    verdict, score, *_ = folded.card
    progress.completed += 1
    progress.passed += verdict == "passed"
    if score is not None:
        progress.scored += 1
        progress.score_sum = EXACT.add(progress.score_sum, exact(score))
