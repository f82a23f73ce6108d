"""One attempt, from its claim to the acknowledgement of its task: a pipeline of seven steps.

    step      appends to the event log                   after a crash behind it
    claim     provisioning, sequence 1                   the heartbeat expires; the coordinator opens the next attempt
    prepare   -                                          as above: nothing was paid
    run       running, before the target is called       as above; a call in flight may be paid again
    record    responded                                  the next attempt starts from the answer, and scores it
    score     scored, for each score that was paid       the next attempt calls only the missing evaluators
    close     completed, retrying, failed or timed_out   storage applies the event; a redelivered claim is rejected
    ack       - (the task leaves the queue)              -

`submit` claims a set of tasks in one round trip (`_claim`). `_execute` takes each accepted one from there to
its ack; `_run_to_close` is the pipeline between them, one line for each step.

The task is acknowledged only after the log has acknowledged the closing event: at-least-once delivery, and
the claim makes a redelivery harmless. A fault in any step becomes the closing event that `outcome` has for it.
Two attempts end without one: a fenced attempt (the coordinator has opened the next one), and an attempt of a
batch that was stopped (the coordinator ends it). Whatever happens, the slot is free in the end.
"""  # noqa: E501 - a table

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from pydantic import ValidationError

from domain.batch_spec import Variant
from domain.retry_policy import SHUTDOWN
from eventlog import payloads as p
from eventlog.codec import OversizeEvent
from eventlog.event_queue import AttemptLost, Claimed, ClaimRequest, EventQueue, OwnedAttempt
from eventlog.outage import OutageBackoff
from executor.ack_buffer import AckBuffer
from executor.batch_runtime import BatchEvaluator, BatchRuntime, RuntimeCache, required
from executor.contract import Permanent, ScoringRequest, TargetReply, TargetRequest
from executor.failure_streak import FailureStreaks
from executor.lanes.permits import Permits
from executor.outcome import Closing, close_after, completed, responded, with_short_reasons
from executor.replay import ReplayedAttempt, replay
from executor.scoring import Scoring
from executor.slot_pool import ActiveTask, Interrupted, InterruptReason, SlotPool
from executor.target_call import NO_CONTEXT, TargetCall, build_request, serial_context
from executor.telemetry import ExecutorCounters, attempt_span, status_of
from taskqueue.batch_registry import BatchRegistry
from taskqueue.tasks import Delivery, QueueUnavailable

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClaimedAttempt:
    """An attempt that this executor owns."""

    task: ActiveTask
    owned: OwnedAttempt
    runtime: BatchRuntime | Permanent
    replayed: ReplayedAttempt | Permanent


@dataclass(frozen=True, slots=True)
class PreparedAttempt:
    """Everything that an attempt needs, validated before anything is paid for."""

    variant: Variant
    request: TargetRequest
    evaluators: Sequence[BatchEvaluator]
    is_sequential: bool
    replayed: ReplayedAttempt
    call: TargetCall | None
    """None where the answer is on record."""


@dataclass(slots=True, kw_only=True, eq=False)
class AttemptPipeline:
    """Runs the attempts of an executor's tasks."""

    events: EventQueue
    batch_registry: BatchRegistry
    slot_pool: SlotPool
    runtimes: RuntimeCache
    acks: AckBuffer
    streaks: FailureStreaks
    counters: ExecutorCounters
    backoff: OutageBackoff
    instance_id: str
    process: str
    now: Callable[[], datetime]
    jitter: Callable[[], float]
    running: set[asyncio.Task[None]] = field(default_factory=set)
    """The asyncio tasks of attempts under way."""
    _nonces: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def has_capacity(self) -> bool:
        """Whether the event queue can buffer the events of further attempts (backpressure)."""
        return self.events.outbox.has_capacity

    def submit(
        self, deliveries: Sequence[Delivery], permits_of: Callable[[str], Permits]
    ) -> list[ActiveTask]:
        """Start the attempts of deliveries; returns those that were not active already."""
        tasks = self.slot_pool.acquire(deliveries)
        for task in tasks:
            task.permits = permits_of(task.delivery.queue)
        if tasks:
            self._spawn(self._claim(tasks))
        return tasks

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    # claim

    async def _claim(self, tasks: Sequence[ActiveTask]) -> None:
        """Append `provisioning` for all tasks in one round trip; run the attempts whose claim is accepted.

        A rejected claim means that the attempt has another owner, or was superseded: the task is acked.
        """
        try:
            runtimes = [await self._runtime(task.delivery.batch_id) for task in tasks]
            results = await self.events.claim_many([self._claim_request(task.delivery) for task in tasks])
        except ValidationError as error:
            await self._claim_separately(tasks, error)
        except Exception:
            # Not acked: another executor takes the tasks over.
            ids = [task.delivery.task.evaluation_id for task in tasks[:10]]
            logger.exception(
                "claim failed: the tasks are left to be taken over",
                extra={"tasks": len(tasks), "evaluation_ids": ids},
            )
            for task in tasks:
                self.slot_pool.release(task)
        else:
            for task, runtime, result in zip(tasks, runtimes, results, strict=True):
                if isinstance(result, AttemptLost):
                    self._ack(task, None)
                else:
                    self._spawn(self._execute(task, result, runtime))

    async def _runtime(self, batch_id: str) -> BatchRuntime | Permanent:
        while True:
            try:
                return await self.runtimes.of(batch_id)
            except QueueUnavailable as error:
                await self.backoff.wait(error)

    def _claim_request(self, delivery: Delivery) -> ClaimRequest:
        """Identify this delivery by a nonce: a duplicate claim is ours only if it carries the same one."""
        claim = p.Provisioning(executor=self.instance_id, nonce=str(next(self._nonces)))
        return ClaimRequest(delivery.task.evaluation_id, delivery.batch_id, delivery.task.attempt, claim)

    async def _claim_separately(self, tasks: Sequence[ActiveTask], error: ValidationError) -> None:
        """Find the task with an invalid id: it must not keep the others from being claimed."""
        if len(tasks) > 1:
            for task in tasks:
                await self._claim([task])
            return
        [task] = tasks
        logger.warning("invalid task: dead-lettered", extra={**_ids(task), "error": str(error)})
        self.acks.dead_letter(task.delivery)
        self.slot_pool.release(task)

    # from claim to ack

    async def _execute(self, task: ActiveTask, claimed: Claimed, runtime: BatchRuntime | Permanent) -> None:
        """Run one attempt from its accepted claim to the ack of its task."""
        if isinstance(runtime, BatchRuntime):
            task.deadline = runtime.spec.attempt_deadline.total_seconds()
        attempt = ClaimedAttempt(task, claimed.attempt, runtime, _replayed(task, claimed))
        self._log("attempt claimed", task)
        try:
            closing = await self._traced(attempt)
        except AttemptLost:
            self._log("attempt fenced", task)
            closing = None
        except Exception:
            # Not acked: another executor takes the task over.
            logger.exception(
                "attempt ended by an internal error: the task is left to be taken over", extra=_ids(task)
            )
            self.slot_pool.release(task)
            return
        else:
            self._log("attempt closed", task, status=status_of(closing))
        self._ack(task, closing)
        self._observe(task, closing, runtime)

    async def _traced(self, attempt: ClaimedAttempt) -> Closing | None:
        """Run the steps, under a span where the evaluation is traced, and await their acknowledgement."""
        task, replayed = attempt.task, attempt.replayed
        if isinstance(replayed, Permanent) or replayed.traceparent is None:
            closing = await self._run_to_close(attempt)
        else:
            task.traceparent = replayed.traceparent
            attempt.owned.set_traceparent(replayed.traceparent)
            with attempt_span(task.delivery, replayed, worker=self.instance_id, now=self.now()) as span:
                closing = await self._run_to_close(attempt)
                span.set_attributes({"status": status_of(closing), "eval_mode": task.mode})
        if closing:
            await attempt.owned.acknowledged()
        return closing

    async def _run_to_close(self, attempt: ClaimedAttempt) -> Closing | None:
        """Prepare, run, record, score; then close with the result or the fault; None: batch stopped."""
        try:
            prepared = await self._prepare(attempt)
            reply = await self._run(attempt, prepared)
            self._record(attempt, prepared, reply.answer)
            scores = await self._score(attempt, prepared, reply.answer)
            closing: Closing | None = completed(reply.answer, scores, exit_code=reply.exit_code)
        except AttemptLost:
            raise
        except Interrupted as interrupted:
            closing = self._closing_after_interrupt(interrupted.reason)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one evaluation must not end the executor
            closing = self._closing_after(error, attempt)
        return self._close(attempt, closing) if closing else None

    # prepare

    async def _prepare(self, attempt: ClaimedAttempt) -> PreparedAttempt:
        """Validate batch, case and context, and render the request, before anything is paid for."""
        replayed, runtime = required(attempt.replayed), required(attempt.runtime)
        delivery, opening, spec = attempt.task.delivery, replayed.opening, runtime.spec
        variant = runtime.variant(opening.variant)
        context = await serial_context(delivery, self.batch_registry) if opening.in_group else NO_CONTEXT
        target = None if replayed.answer else runtime.target(variant.number)
        request = build_request(
            delivery.task.evaluation_id,
            opening,
            template=variant.prompt if target else None,
            timeout=spec.timeout,
            context=context,
        )
        call = TargetCall(runtime, variant, target, request) if target else None
        evaluators = runtime.all_evaluators()
        return PreparedAttempt(variant, request, evaluators, spec.scores_sequentially, replayed, call)

    # run

    async def _run(self, attempt: ClaimedAttempt, prepared: PreparedAttempt) -> TargetReply:
        """Append `running`, then call the target; an answer on record is taken instead.

        A crash during the call is the one place where a call may be paid for twice.
        """
        task, target = attempt.task, prepared.variant.target
        task.mode = target.type
        attempt.owned.record(p.Running(target=target.label, process=self.process))
        if prepared.call is None:
            task.raise_if_interrupted()
            return TargetReply(prepared.replayed.answer or p.Answer(output=""))
        return await task.interruptible(prepared.call.make, task.permits)

    # record

    def _record(self, attempt: ClaimedAttempt, prepared: PreparedAttempt, answer: p.Answer) -> None:
        """Append `responded` before scoring: from here on the answer is never paid for again.

        The answer of an attempt that was fenced meanwhile is kept all the same, for its cost.
        """
        event = responded(answer, on_record=prepared.replayed.answer is not None)
        try:
            attempt.owned.record(event)
        except AttemptLost:
            if not event.cached:
                attempt.owned.record_late(event)
            raise

    # score

    async def _score(
        self, attempt: ClaimedAttempt, prepared: PreparedAttempt, answer: p.Answer
    ) -> Sequence[p.Score]:
        """Call the evaluators without a score on record; each paid score is appended as `scored`."""
        task, request = attempt.task, prepared.request
        fields = {**request.fields, "output": answer.output}
        scoring = Scoring(
            prepared.evaluators, attempt.owned, task.permits, is_sequential=prepared.is_sequential
        )
        return await task.interruptible(
            scoring.score,
            ScoringRequest(request.case, answer.output, fields, answer),
            dict(prepared.replayed.scores),
        )

    # close

    def _close(self, attempt: ClaimedAttempt, closing: Closing) -> Closing:
        """Append the closing event and free the slot; reasons are truncated if the event is too large."""
        try:
            attempt.owned.record(closing)
        except OversizeEvent:
            if not isinstance(closing, p.Completed | p.Failed):
                raise
            closing = with_short_reasons(closing)
            attempt.owned.record(closing)
        attempt.task.mark_recorded()
        return closing

    def _closing_after(self, error: BaseException, attempt: ClaimedAttempt) -> Closing:
        replayed, number = attempt.replayed, attempt.task.delivery.task.attempt
        retries = 0 if isinstance(replayed, Permanent) else replayed.opening.retries
        now, jitter = self.now(), self.jitter()
        return close_after(error, retries=retries, attempt=number, now=now, jitter=jitter)

    def _closing_after_interrupt(self, reason: InterruptReason) -> p.Retrying | None:
        """Close an attempt at shutdown as an uncharged retry; the coordinator ends stopped batches."""
        if reason is InterruptReason.BATCH_STOPPED:
            return None
        return p.Retrying(p.ErrorDetail(kind=SHUTDOWN, message=reason.value), self.now())

    # ack

    def _ack(self, task: ActiveTask, closing: Closing | None) -> None:
        """Ack the task, or dead-letter it where the evaluation has failed, and free the slot.

        The closing event is in the log, or the attempt belongs to another owner: the task is not needed.
        """
        match closing:
            case p.Failed() | p.TimedOut():
                self.acks.dead_letter(task.delivery, traceparent=task.traceparent)
            case _:
                self.acks.ack(task.delivery, traceparent=task.traceparent)
        self.counters.ended(task, closing)
        self.slot_pool.release(task)

    def _observe(
        self, task: ActiveTask, closing: Closing | None, runtime: BatchRuntime | Permanent
    ) -> None:
        """Count consecutive failures; those of a batch without a runtime are left to the coordinator."""
        limit = runtime.spec.fail_fast_after if isinstance(runtime, BatchRuntime) else 0
        batch_id, attempt = task.delivery.batch_id, task.delivery.task.attempt
        now = asyncio.get_running_loop().time()
        self.streaks.observe(batch_id, closing, attempt=attempt, limit=limit, now=now)

    def _log(self, message: str, task: ActiveTask, **fields: str) -> None:
        logger.debug(message, extra={**_ids(task), "executor": self.instance_id, **fields})


def _replayed(task: ActiveTask, claimed: Claimed) -> ReplayedAttempt | Permanent:
    try:
        return replay(*task.delivery.task, claimed.stream)
    except Permanent as fault:
        return fault


def _ids(task: ActiveTask) -> dict[str, str | int]:
    evaluation_id, attempt = task.delivery.task
    return {"evaluation_id": evaluation_id, "batch_id": task.delivery.batch_id, "attempt": attempt}
