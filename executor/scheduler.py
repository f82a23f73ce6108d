"""Taking tasks: an advisor, not a gatekeeper.

Work is asked for only when a slot is free for it, the event queue has room for what it will say, and
admission grants it. So no slot ever waits for a limit, and what can't be started now stays in the queue,
where any executor may find it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from itertools import count
from typing import Any

from pydantic import ValidationError

from eventlog import payloads as p
from eventlog.event_queue import AttemptLost, Claimed, EventQueue, Wish
from executor.admission import Admission
from executor.contract import Permanent
from executor.departures import Departures
from executor.evaluation import Evaluating
from executor.fairness import Fairness, Plan
from executor.faults import Closing
from executor.hands import Hands, InHand
from executor.kits import Kit, Kits
from executor.outage import Outage, Patience
from executor.settings import Rhythm
from executor.watch import Watch
from taskqueue.tasks import Delivery, QueueUnavailable, TaskQueue

logger = logging.getLogger(__name__)

Granted = Mapping[str, int]
Fetch = Callable[[Plan, Granted, Callable[[], float]], Awaitable[list[Delivery]]]


class Scheduler:
    """Keeps the slots busy."""

    def __init__(  # noqa: PLR0913 - it brings all parts together
        self,
        tasks: TaskQueue,
        events: EventQueue,
        *,
        incarnation: str,
        hands: Hands,
        watch: Watch,
        kits: Kits,
        evaluating: Evaluating,
        departures: Departures,
        admission: Admission,
        rhythm: Rhythm,
        outage: Outage,
    ) -> None:
        self._tasks = tasks
        self._events = events
        self._incarnation = incarnation
        self._hands = hands
        self._watch = watch
        self._kits = kits
        self._evaluating = evaluating
        self._departures = departures
        self._admission = admission
        self._rhythm = rhythm
        self._fairness = Fairness()
        self._patience = Patience(outage, longest=1.0)
        self._nonces = count(1)
        self._stopping = False
        self._at_work: set[asyncio.Task[None]] = set()

    @property
    def at_work(self) -> "set[asyncio.Task[None]]":
        """What runs on behalf of tasks in hand."""
        return set(self._at_work)

    def stop(self) -> None:
        """Take no more."""
        self._stopping = True

    async def run(self) -> None:
        """Take tasks until told to stop; a request under way is waited for, for it may bring some."""
        clock = asyncio.get_running_loop().time
        every = self._rhythm.take_over_every.total_seconds()
        take_over_at = clock() + every
        while not self._stopping:
            if not self._may_take:
                await self._pause()
                continue
            try:
                if clock() < take_over_at:
                    await self._take(self._consume, clock)
                else:
                    take_over_at = clock() + every
                    await self._take(self._take_over, clock)
            except QueueUnavailable as error:
                await self._patience.wait(error)
            else:
                self._patience.rewarded()

    @property
    def _may_take(self) -> bool:
        return self._hands.free > 0 and self._events.outbox.has_room and bool(self._watch.priorities)

    async def _pause(self) -> None:
        """Wait for a free slot, and look now and then for what else may have changed."""
        try:
            async with asyncio.timeout(self._rhythm.glance.total_seconds()):
                await self._hands.changed()
        except TimeoutError:
            return

    async def _take(self, fetch: Fetch, clock: Callable[[], float]) -> None:
        """Ask for advice, then for tasks, and give back what was granted and not needed."""
        plan = self._fairness.plan(self._watch.priorities, self._hands.free, now=clock())
        granted = await self._admission.admit(plan.wanted)
        taken: Counter[str] = Counter()
        try:
            deliveries = await fetch(plan, granted, clock)
            taken.update(delivery.batch_id for delivery in deliveries)
            self._begin(deliveries)
        finally:
            left = {batch: number - taken[batch] for batch, number in granted.items()}
            if unused := {batch: number for batch, number in left.items() if number > 0}:
                await self._admission.give_back(unused)

    async def _consume(self, plan: Plan, granted: Granted, clock: Callable[[], float]) -> list[Delivery]:
        """Take what is ready; wait for it only where nobody is kept waiting by that."""
        priorities, deliveries = self._watch.priorities, list[Delivery]()
        patient = self._rhythm.block if len(granted) == len(priorities) else self._rhythm.glance
        if any(granted.values()):
            block = patient if plan.may_wait else timedelta(0)
            deliveries = await self._tasks.consume(self._incarnation, granted, block=block)
        else:
            await asyncio.sleep(self._rhythm.glance.total_seconds())
        self._fairness.took(plan, Counter(each.batch_id for each in deliveries), now=clock())
        return deliveries

    async def _take_over(self, _plan: Plan, granted: Granted, _clock: object) -> list[Delivery]:
        """Take what others have left lying."""
        idle, limit = self._rhythm.take_over_idle, sum(granted.values())
        return await self._tasks.take_over(self._incarnation, list(granted), idle=idle, limit=limit)

    def _begin(self, deliveries: Sequence[Delivery]) -> None:
        """Start on what was taken; what comes while stopping goes back."""
        if self._stopping:
            for delivery in deliveries:
                self._departures.give_back(delivery)
        elif hands := self._hands.take(deliveries):
            self._spawn(self._claim(hands))

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
            logger.exception("could not claim", extra={"tasks": len(hands)})
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
        logger.warning("not a task", extra={"task": hand.delivery.task, "error": str(error)})
        self._departures.given_up(hand.delivery, "the task names no evaluation that could exist")
        self._hands.let_go(hand)

    async def _kit(self, batch_id: str) -> Kit | Permanent:
        while True:
            try:
                return await self._kits.of(batch_id)
            except QueueUnavailable as error:
                await self._patience.wait(error)

    def _wish(self, delivery: Delivery) -> Wish:
        """Name this very delivery in the claim: only a repetition of the same one may count as ours."""
        claim = p.Provisioning(executor=self._incarnation, nonce=str(next(self._nonces)))
        return Wish(delivery.task.evaluation_id, delivery.batch_id, delivery.task.attempt, claim)

    async def _evaluate(self, hand: InHand, claimed: Claimed, kit: Kit | Permanent) -> None:
        try:
            closing = await self._evaluating.carry_out(hand, claimed, kit)
        except Exception:
            logger.exception("could not carry out", extra={"evaluation_id": hand.delivery.task[0]})
            self._hands.let_go(hand)
        else:
            self._finish(hand, closing)

    def _finish(self, hand: InHand, closing: Closing | None) -> None:
        """Free the slot and let the task go: its end is on record, or not ours to write."""
        match closing:
            case p.Failed(error=error):
                self._departures.given_up(hand.delivery, f"{error.kind}: {error.message}"[:500])
            case p.TimedOut(limit=limit, seconds=seconds):
                self._departures.given_up(hand.delivery, f"timed out: {limit}, {seconds:g} s")
            case _:
                self._departures.done(hand.delivery)
        self._hands.let_go(hand)
