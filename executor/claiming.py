"""From tasks in hand to attempts that are carried out: claim, evaluate, let go.

A claim is waited for, because only an owner may go on; claims of tasks that were taken together share a
round trip. Whatever becomes of a task, its slot is free in the end.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from typing import Any

from pydantic import ValidationError

from eventlog import payloads as p
from eventlog.event_queue import AttemptLost, Claimed, ClaimRequest, EventQueue
from executor.ack_buffer import AckBuffer
from executor.batch_runtime import BatchRuntime, RuntimeCache
from executor.contract import Permanent
from executor.evaluation import Evaluating
from executor.failure_streak import FailureStreaks
from executor.faults import Closing
from executor.lanes.permits import Permits
from executor.outage import Outage, OutageBackoff
from executor.slot_pool import ActiveTask, SlotPool
from executor.telemetry import ExecutorCounters
from taskqueue.tasks import Delivery, QueueUnavailable

logger = logging.getLogger(__name__)

MAX_REASON = 500
"""Characters of a dead letter's reason: the log has the whole story."""


class Claiming:
    """Makes attempts of tasks."""

    def __init__(  # noqa: PLR0913 - it brings all parts together
        self,
        events: EventQueue,
        *,
        instance_id: str,
        hands: SlotPool,
        runtimes: RuntimeCache,
        evaluating: Evaluating,
        acks: AckBuffer,
        outage: Outage,
        counters: ExecutorCounters,
        streaks: FailureStreaks,
    ) -> None:
        self._events = events
        self._instance_id = instance_id
        self._slot_pool = hands
        self._runtimes = runtimes
        self._evaluating = evaluating
        self._acks = acks
        self._backoff = OutageBackoff(outage, longest=1.0)
        self._counters = counters
        self._streaks = streaks
        self._nonces = count(1)
        self._at_work: set[asyncio.Task[None]] = set()

    @property
    def at_work(self) -> "set[asyncio.Task[None]]":
        """What runs on behalf of tasks in hand."""
        return set(self._at_work)

    @property
    def has_room(self) -> bool:
        """Whether what further attempts have to say can be kept until it is on record."""
        return self._events.outbox.has_room

    def begin(self, deliveries: Sequence[Delivery], lend: Callable[[str], Permits]) -> list[ActiveTask]:
        """Take hold of tasks, and start on them with what each may call; returns what is new."""
        hands = self._slot_pool.take(deliveries)
        for hand in hands:
            hand.permits = lend(hand.delivery.queue)
        if hands:
            self._spawn(self._claim(hands))
        return hands

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def _claim(self, hands: Sequence[ActiveTask]) -> None:
        """Ask to own what was taken, all in one round trip."""
        try:
            for hand, runtime, answer in await self._claims(hands):
                if isinstance(answer, AttemptLost):
                    self._finish(hand, None)
                else:
                    self._spawn(self._evaluate(hand, answer, runtime))
        except ValidationError as error:
            await self._claim_apart(hands, error)
        except Exception:
            # Left to be taken over: whatever this was, it must not cost the executor its slots.
            logger.exception("could not claim", extra={"tasks": len(hands), "evaluation_ids": _some(hands)})
            for hand in hands:
                self._slot_pool.release(hand)

    async def _claims(
        self, hands: Sequence[ActiveTask]
    ) -> list[tuple[ActiveTask, BatchRuntime | Permanent, Claimed | AttemptLost]]:
        runtimes = [await self._runtime(hand.delivery.batch_id) for hand in hands]
        answers = await self._events.claim_many([self._wish(hand.delivery) for hand in hands])
        return list(zip(hands, runtimes, answers, strict=True))

    async def _claim_apart(self, hands: Sequence[ActiveTask], error: ValidationError) -> None:
        """Find the task that names no evaluation: it must not keep its neighbours from being claimed."""
        if len(hands) > 1:
            for hand in hands:
                await self._claim([hand])
            return
        [hand] = hands
        logger.warning("not a task", extra={**_named(hand), "error": str(error)})
        self._acks.dead_letter(hand.delivery, "the task names no evaluation that could exist")
        self._slot_pool.release(hand)

    async def _runtime(self, batch_id: str) -> BatchRuntime | Permanent:
        while True:
            try:
                return await self._runtimes.of(batch_id)
            except QueueUnavailable as error:
                await self._backoff.wait(error)

    def _wish(self, delivery: Delivery) -> ClaimRequest:
        """Name this very delivery in the claim: only a repetition of the same one may count as ours."""
        claim = p.Provisioning(executor=self._instance_id, nonce=str(next(self._nonces)))
        return ClaimRequest(delivery.task.evaluation_id, delivery.batch_id, delivery.task.attempt, claim)

    async def _evaluate(
        self, hand: ActiveTask, claimed: Claimed, runtime: BatchRuntime | Permanent
    ) -> None:
        if isinstance(runtime, BatchRuntime):
            hand.limit = runtime.spec.attempt_deadline.total_seconds()
        try:
            closing = await self._evaluating.carry_out(hand, claimed, runtime)
        except Exception:
            logger.exception("could not carry out", extra=_named(hand))
            self._slot_pool.release(hand)
        else:
            self._finish(hand, closing)
            self._count(hand, closing, runtime)

    def _count(self, hand: ActiveTask, closing: Closing | None, runtime: BatchRuntime | Permanent) -> None:
        """Count failures in a row; those of a batch that can't be set up are left to the coordinator."""
        limit = runtime.spec.fail_fast_after if isinstance(runtime, BatchRuntime) else 0
        batch_id, attempt = hand.delivery.batch_id, hand.delivery.task.attempt
        now = asyncio.get_running_loop().time()
        self._streaks.observe(batch_id, closing, attempt=attempt, limit=limit, now=now)

    def _finish(self, hand: ActiveTask, closing: Closing | None) -> None:
        """Free the slot and let the task go: its end is on record, or not ours to write."""
        match closing:
            case p.Failed(error=error):
                reason = f"{error.kind}: {error.message}"[:MAX_REASON]
                self._acks.dead_letter(hand.delivery, reason, traceparent=hand.traceparent)
            case p.TimedOut(limit=limit, seconds=seconds):
                reason = f"timed out: {limit}, {seconds:g} s"
                self._acks.dead_letter(hand.delivery, reason, traceparent=hand.traceparent)
            case _:
                self._acks.ack(hand.delivery, traceparent=hand.traceparent)
        self._counters.ended(hand, closing)
        self._slot_pool.release(hand)


def _named(hand: ActiveTask) -> dict[str, str | int]:
    """Say whom a line of the log speaks of."""
    evaluation_id, attempt = hand.delivery.task
    return {"evaluation_id": evaluation_id, "batch_id": hand.delivery.batch_id, "attempt": attempt}


def _some(hands: Sequence[ActiveTask]) -> list[str]:
    return [hand.delivery.task.evaluation_id for hand in hands[:10]]
