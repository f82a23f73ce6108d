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
from executor.contract import Permanent
from executor.departures import Departures
from executor.evaluation import Evaluating
from executor.failure_streak import FailureStreaks
from executor.faults import Closing
from executor.hands import Hands, InHand
from executor.kits import Kit, Kits
from executor.lanes.permits import Permits
from executor.outage import Outage, Patience
from executor.telemetry import Tally
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
        hands: Hands,
        kits: Kits,
        evaluating: Evaluating,
        departures: Departures,
        outage: Outage,
        tally: Tally,
        streaks: FailureStreaks,
    ) -> None:
        self._events = events
        self._instance_id = instance_id
        self._hands = hands
        self._kits = kits
        self._evaluating = evaluating
        self._departures = departures
        self._patience = Patience(outage, longest=1.0)
        self._tally = tally
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

    def begin(self, deliveries: Sequence[Delivery], lend: Callable[[str], Permits]) -> list[InHand]:
        """Take hold of tasks, and start on them with what each may call; returns what is new."""
        hands = self._hands.take(deliveries)
        for hand in hands:
            hand.permits = lend(hand.delivery.line)
        if hands:
            self._spawn(self._claim(hands))
        return hands

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def _claim(self, hands: Sequence[InHand]) -> None:
        """Ask to own what was taken, all in one round trip."""
        try:
            for hand, kit, answer in await self._claims(hands):
                if isinstance(answer, AttemptLost):
                    self._finish(hand, None)
                else:
                    self._spawn(self._evaluate(hand, answer, kit))
        except ValidationError as error:
            await self._claim_apart(hands, error)
        except Exception:
            # Left to be taken over: whatever this was, it must not cost the executor its slots.
            logger.exception("could not claim", extra={"tasks": len(hands), "evaluation_ids": _some(hands)})
            for hand in hands:
                self._hands.let_go(hand)

    async def _claims(
        self, hands: Sequence[InHand]
    ) -> list[tuple[InHand, Kit | Permanent, Claimed | AttemptLost]]:
        kits = [await self._kit(hand.delivery.batch_id) for hand in hands]
        answers = await self._events.claim_many([self._wish(hand.delivery) for hand in hands])
        return list(zip(hands, kits, answers, strict=True))

    async def _claim_apart(self, hands: Sequence[InHand], error: ValidationError) -> None:
        """Find the task that names no evaluation: it must not keep its neighbours from being claimed."""
        if len(hands) > 1:
            for hand in hands:
                await self._claim([hand])
            return
        [hand] = hands
        logger.warning("not a task", extra={**_named(hand), "error": str(error)})
        self._departures.given_up(hand.delivery, "the task names no evaluation that could exist")
        self._hands.let_go(hand)

    async def _kit(self, batch_id: str) -> Kit | Permanent:
        while True:
            try:
                return await self._kits.of(batch_id)
            except QueueUnavailable as error:
                await self._patience.wait(error)

    def _wish(self, delivery: Delivery) -> ClaimRequest:
        """Name this very delivery in the claim: only a repetition of the same one may count as ours."""
        claim = p.Provisioning(executor=self._instance_id, nonce=str(next(self._nonces)))
        return ClaimRequest(delivery.task.evaluation_id, delivery.batch_id, delivery.task.attempt, claim)

    async def _evaluate(self, hand: InHand, claimed: Claimed, kit: Kit | Permanent) -> None:
        if isinstance(kit, Kit):
            hand.limit = kit.spec.attempt_deadline.total_seconds()
        try:
            closing = await self._evaluating.carry_out(hand, claimed, kit)
        except Exception:
            logger.exception("could not carry out", extra=_named(hand))
            self._hands.let_go(hand)
        else:
            self._finish(hand, closing)
            self._count(hand, closing, kit)

    def _count(self, hand: InHand, closing: Closing | None, kit: Kit | Permanent) -> None:
        """Count failures in a row; those of a batch that can't be set up are left to the coordinator."""
        limit = kit.spec.fail_fast_after if isinstance(kit, Kit) else 0
        batch_id, attempt = hand.delivery.batch_id, hand.delivery.task.attempt
        now = asyncio.get_running_loop().time()
        self._streaks.observe(batch_id, closing, attempt=attempt, limit=limit, now=now)

    def _finish(self, hand: InHand, closing: Closing | None) -> None:
        """Free the slot and let the task go: its end is on record, or not ours to write."""
        match closing:
            case p.Failed(error=error):
                reason = f"{error.kind}: {error.message}"[:MAX_REASON]
                self._departures.given_up(hand.delivery, reason, traceparent=hand.traceparent)
            case p.TimedOut(limit=limit, seconds=seconds):
                reason = f"timed out: {limit}, {seconds:g} s"
                self._departures.given_up(hand.delivery, reason, traceparent=hand.traceparent)
            case _:
                self._departures.done(hand.delivery, traceparent=hand.traceparent)
        self._tally.ended(hand, closing)
        self._hands.let_go(hand)


def _named(hand: InHand) -> dict[str, str | int]:
    """Say whom a line of the log speaks of."""
    evaluation_id, attempt = hand.delivery.task
    return {"evaluation_id": evaluation_id, "batch_id": hand.delivery.batch_id, "attempt": attempt}


def _some(hands: Sequence[InHand]) -> list[str]:
    return [hand.delivery.task.evaluation_id for hand in hands[:10]]
