"""One attempt from its claim to its closing event.

    replay → prepare → running → ask → responded → judge → completed → on record

Whatever goes wrong on the way becomes the closing event that `faults` has for it. Only two things end an
attempt without one: somebody else owns the evaluation now, or its batch was stopped.
"""

import logging
from collections.abc import Callable
from datetime import datetime

from domain.retry_policy import SHUTDOWN
from eventlog import payloads as p
from eventlog.codec import OversizeEvent
from eventlog.event_queue import AttemptLost, Claimed, OwnedAttempt
from executor.batch_runtime import BatchRuntime
from executor.contract import Permanent
from executor.faults import Closing, close_after
from executor.replay import ReplayedAttempt, replay
from executor.slot_pool import ActiveTask, Interrupted, InterruptReason
from executor.steps import judge, obtain, prepare, put_on_record
from executor.telemetry import status_of
from executor.tracing import process_task
from executor.verdict import completed, shortened
from taskqueue.batch_registry import BatchRegistry

logger = logging.getLogger(__name__)


class Evaluating:
    """Carries attempts out."""

    def __init__(
        self,
        batch_registry: BatchRegistry,
        *,
        process: str,
        worker: str,
        now: Callable[[], datetime],
        jitter: Callable[[], float],
    ) -> None:
        self._batch_registry = batch_registry
        self._process = process
        self._worker = worker
        self._now = now
        self._jitter = jitter

    async def carry_out(
        self, hand: ActiveTask, claimed: Claimed, runtime: BatchRuntime | Permanent
    ) -> Closing | None:
        """Work on an attempt until its end is on record; None if it ended without us."""
        owned, known = claimed.attempt, _recalled(hand, claimed)
        self._log("attempt claimed", hand)
        try:
            if isinstance(known, ReplayedAttempt) and known.traceparent is not None:
                closing = await self._traced(hand, owned, known, runtime)
            else:
                closing = await self._closed(hand, owned, known, runtime)
            if closing:
                await owned.acknowledged()
        except AttemptLost:
            self._log("attempt fenced", hand)
            return None
        self._log("attempt closed", hand, status=status_of(closing))
        return closing

    def _log(self, message: str, hand: ActiveTask, **fields: str) -> None:
        evaluation_id, attempt = hand.delivery.task
        about = {"evaluation_id": evaluation_id, "attempt": attempt, "batch_id": hand.delivery.batch_id}
        logger.debug(message, extra={**about, "executor": self._worker, **fields})

    async def _traced(
        self,
        hand: ActiveTask,
        owned: OwnedAttempt,
        known: ReplayedAttempt,
        runtime: BatchRuntime | Permanent,
    ) -> Closing | None:
        """Do the same under a span, which the log's answer is no part of."""
        hand.traceparent = known.traceparent
        owned.carry_on(known.traceparent)
        with process_task(hand.delivery, known, worker=self._worker, now=self._now()) as task:
            closing = await self._closed(hand, owned, known, runtime)
            task.set_attributes({"status": status_of(closing), "eval_mode": hand.mode})
            return closing

    async def _closed(
        self,
        hand: ActiveTask,
        owned: OwnedAttempt,
        known: ReplayedAttempt | Permanent,
        runtime: BatchRuntime | Permanent,
    ) -> Closing | None:
        closing = await self._come_to_an_end(hand, owned, known, runtime)
        if closing:
            closing = _close(owned, closing)
            hand.mark_recorded()
        return closing

    async def _come_to_an_end(
        self,
        hand: ActiveTask,
        owned: OwnedAttempt,
        known: ReplayedAttempt | Permanent,
        runtime: BatchRuntime | Permanent,
    ) -> Closing | None:
        attempt = hand.delivery.task.attempt
        retries = known.opening.retries if isinstance(known, ReplayedAttempt) else 0
        try:
            return await self._work(hand, owned, known, runtime)
        except AttemptLost:
            raise
        except Interrupted as interrupted:
            return self._hand_back(interrupted.ending)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a case may not take the executor with it
            return close_after(
                error, retries=retries, attempt=attempt, now=self._now(), jitter=self._jitter()
            )

    async def _work(
        self,
        hand: ActiveTask,
        owned: OwnedAttempt,
        known: ReplayedAttempt | Permanent,
        runtime: BatchRuntime | Permanent,
    ) -> p.Completed:
        if isinstance(known, Permanent):
            raise known
        if isinstance(runtime, Permanent):
            raise Permanent(runtime.kind, runtime.message)
        prepared = await prepare(hand.delivery, known, runtime, self._batch_registry)
        hand.mode = prepared.variant.target.type
        owned.record(p.Running(target=prepared.variant.target.label, process=self._process))
        reply = await hand.at_work(obtain, prepared, hand.permits)
        put_on_record(owned, reply.answer, on_record=known.answer is not None)
        scores = await hand.at_work(judge, owned, prepared, reply.answer, hand.permits)
        return completed(reply.answer, scores, exit_code=reply.exit_code)

    def _hand_back(self, ending: InterruptReason) -> p.Retrying | None:
        """Close what others may begin again at once; what was stopped is ended by whoever stopped it."""
        if ending is InterruptReason.STOPPED:
            return None
        return p.Retrying(p.ErrorDetail(kind=SHUTDOWN, message=ending.value), self._now())


def _recalled(hand: ActiveTask, claimed: Claimed) -> ReplayedAttempt | Permanent:
    try:
        return replay(*hand.delivery.task, claimed.stream)
    except Permanent as fault:
        return fault


def _close(owned: OwnedAttempt, closing: Closing) -> Closing:
    """Record the end in a form that fits."""
    try:
        owned.record(closing)
    except OversizeEvent:
        if not isinstance(closing, p.Completed | p.Failed):
            raise
        closing = shortened(closing)
        owned.record(closing)
    return closing
