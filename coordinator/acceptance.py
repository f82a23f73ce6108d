"""Acceptance of a batch: one transaction commits all of it; executors see it only afterwards."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from random import Random

from pydantic_core import to_json

from coordinator import telemetry
from coordinator.submission import NewEvaluation, SerialPlace
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog import tracing
from eventlog.codec import encode, make_event
from eventlog.events import Event
from eventlog.keys import shard_of
from projections.ledger.batch import NewBatch
from projections.ledger.contract import AcceptedEvaluation, Ledger, SerialLink

LOOK_UP = 50
"""Requests looked up in the cache at a time: each, and its answer, may take a megabyte."""
LOOK_UP_BYTES = 4 * 1024 * 1024
"""Bytes of cases after which the collected requests are looked up, however few they are."""


async def accept(
    ledger: Ledger,
    batch: NewBatch,
    evaluations: AsyncIterator[NewEvaluation],
    *,
    now: datetime,
    shards: int,
) -> int:
    """Commit a batch and all its evaluations; returns how many there are.

    An exception of the evaluations' source rolls the whole transaction back.
    """
    opening = _Opening(batch, now, shards, traced=batch.traced if telemetry.is_tracing() else 0.0)
    accepted = (opening.accept(one) async for one in _with_cached(ledger, evaluations))
    about = {"batch_id": batch.batch_id, "eval_mode": telemetry.mode_of(batch.spec)}
    with tracing.alone("eval.coordinator.start_batch", **about) as span:
        total = await ledger.accept(batch, accepted, now=now)
        span.set_attribute("test_count", total)
        if total == 0:
            await ledger.finish(batch.batch_id)
    return total


_dice = Random()  # noqa: S311 - separate: a test that seeds the global generator expects the same sequence


class _Opening:
    """Numbers evaluations and creates their opening events."""

    def __init__(self, batch: NewBatch, now: datetime, shards: int, *, traced: float) -> None:
        self.batch = batch
        self.now = now
        self.shards = shards
        self.traced = traced
        self.number = 0

    def accept(self, one: NewEvaluation) -> AcceptedEvaluation:
        self.number += 1
        key = evaluation_id(self.batch.batch_id, self.number)
        event = make_event(
            p.Queued(
                case=one.case,
                answer=one.answer,
                variant=one.variant,
                repetition=one.repetition,
                retries=self.batch.spec.retries,
                in_group=bool(one.serial and one.serial.recalls),
            ),
            evaluation_id=key,
            batch_id=self.batch.batch_id,
            attempt=1,
            sequence=0,
            occurred_at=self.now,
            source=self.batch.submitted_by,
            traceparent=self._begun(key, one.case.id) if _dice.random() < self.traced else None,
        )
        return AcceptedEvaluation(
            event,
            encode(event),
            shard_of(key, self.shards),
            one.case.id,
            one.variant,
            one.repetition,
            one.cache_key,
            self._link(one.serial),
        )

    def _begun(self, key: str, case_id: str) -> str | None:
        """Begin the evaluation's trace."""
        return tracing.begin(
            "eval.coordinator.accept",
            evaluation_id=key,
            batch_id=self.batch.batch_id,
            test_case_id=case_id,
        )

    def _link(self, place: SerialPlace | None) -> SerialLink | None:
        if place is None:
            return None
        recalls = tuple((self._id(recall.number), recall.stored_as) for recall in place.recalls)
        return SerialLink(self._id(place.follows), recalls)

    def _id(self, number: int) -> str:
        return evaluation_id(self.batch.batch_id, number)


async def _with_cached(
    ledger: Ledger, evaluations: AsyncIterator[NewEvaluation]
) -> AsyncIterator[NewEvaluation]:
    """Fill in cached answers of earlier batches where an evaluation has a cache key."""
    waiting: list[NewEvaluation] = []
    held = 0
    async for one in evaluations:
        if one.cache_key is None and not waiting:
            yield one
            continue
        waiting.append(one)
        held += len(to_json(one.case))
        if len(waiting) >= LOOK_UP or held >= LOOK_UP_BYTES:
            for answered in await _looked_up(ledger, waiting):
                yield answered
            waiting, held = [], 0
    for answered in await _looked_up(ledger, waiting):
        yield answered


async def _looked_up(ledger: Ledger, evaluations: list[NewEvaluation]) -> list[NewEvaluation]:
    keys = sorted({one.cache_key for one in evaluations if one.cache_key and one.answer is None})
    known = await ledger.cached(keys) if keys else {}
    return [_answered(one, known.get(one.cache_key or "")) for one in evaluations]


def _answered(one: NewEvaluation, found: Event | None) -> NewEvaluation:
    if found is None or one.answer is not None or not isinstance(found.data, p.Responded):
        return one
    response = found.data
    return replace(
        one,
        answer=p.Answer(
            response.output, response.usage, response.cost_usd, response.latency_ms, cached=True
        ),
    )
