"""The writer's event queue: numbers events, sends them in company, and sees them through an outage.

Recording never waits. One sender takes everything that is due, of all attempts, into one round trip;
what is recorded meanwhile makes up the next. Only a claim waits for its answer, because the owner must
know that it is one.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Self

from eventlog import payloads as p
from eventlog import telemetry
from eventlog.backoff import Backoff
from eventlog.clock import utc_now
from eventlog.codec import RawEntry, encode, make_event
from eventlog.commands import AttemptPosition, Command, Fact, OpenAttempt, RecordProgress, decide
from eventlog.keys import shard_of
from eventlog.lifecycle import Phase
from eventlog.log import Append, AppendResponse, AppendResult, EncodedEvent, LogUnavailable, LogWriter, Mode
from eventlog.outbox import AttemptBuffer, Outbox
from eventlog.redis_errors import RedisCommandError
from eventlog.tasks import end

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """How a queue behaves; the defaults suit an executor."""

    linger: float = 0.002
    """Seconds an event waits for company."""
    max_calls: int = 500
    """Attempts in one round trip."""
    max_bytes: int = 10 * 1024 * 1024
    """What unsent events and the acknowledged tail may hold before no more work is taken on."""
    release_interval: float = 1.0
    """Seconds between looks at what Postgres has."""
    longest_backoff: float = 1.0


class AttemptLost(Exception):  # noqa: N818 - what happened, to whoever must stop
    """Somebody else has ended this attempt: stop, and drop the work."""

    def __init__(self, evaluation_id: str, attempt: int, answer: AppendResult) -> None:
        super().__init__(f"attempt {attempt} of {evaluation_id} is no longer ours: {answer}")
        self.evaluation_id = evaluation_id
        self.attempt = attempt
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Claimed:
    """An attempt that is ours, with the stream as it stood: an answer in it is not asked for again."""

    attempt: "OwnedAttempt"
    stream: tuple[RawEntry, ...]


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """An attempt that somebody would like to own."""

    evaluation_id: str
    batch_id: str
    attempt: int
    claim: p.Provisioning


NO_REPLY = AppendResponse((), "")


@dataclass(slots=True, eq=False)
class _PendingClaim:
    """A claim on its way, and what the log said to it."""

    draft: AttemptBuffer
    claim: EncodedEvent
    reply: AppendResponse = NO_REPLY
    fate_unknown: bool = False
    epoch: str | None = None
    """The epoch it was first sent in: the log may have accepted it there."""


class OwnedAttempt:
    """One attempt that this writer, and nobody else, writes to."""

    def __init__(self, queue: "EventQueue", draft: AttemptBuffer, standing: AttemptPosition) -> None:
        self._queue = queue
        self._draft = draft
        self._standing = standing

    @property
    def depth(self) -> int:
        """Events recorded but not yet acknowledged."""
        return self._draft.depth

    def carry_on(self, traceparent: str | None) -> None:
        """Have what is recorded from now on belong to a trace."""
        self._draft.traceparent = traceparent

    def record(self, fact: Fact) -> None:
        """Record what happened; returns at once.

        Raises `IllegalTransition` for what can't follow, `AttemptLost` if the attempt was taken away.
        """
        self._write(RecordProgress(fact))

    def open(self, opening: p.Queued) -> None:
        """Write sequence 0 oneself, as a writer without a coordinator does."""
        if self._standing.sequence >= 0:
            raise ValueError("the attempt is open; own the next one to open it")
        self._write(OpenAttempt(opening))

    def keep_late(self, paid: p.Responded) -> None:
        """Have an answer kept that came when the attempt had been taken away: it was paid for.

        It changes nothing but what the batch has cost. What was recorded before is kept by itself.
        """
        if self._draft.lost:
            self._queue.keep_late(self._draft, paid)

    async def acknowledged(self) -> None:
        """Wait until everything recorded is in the log."""
        await self._queue.until_acknowledged(self._draft)
        self._check()

    def _write(self, command: Command) -> None:
        self._check()
        decision = decide(self._standing, command)
        record = self._queue.number(self._draft, decision.after.sequence, decision.payload)
        self._standing = decision.after
        self._queue.add(self._draft, record)

    def _check(self) -> None:
        if self._draft.lost:
            raise AttemptLost(self._draft.evaluation_id, self._draft.attempt, self._draft.lost)


class EventQueue:
    """All that one writer has to say, for any number of attempts at once."""

    def __init__(  # noqa: PLR0913 - two clocks, and somebody to tell, all optional
        self,
        log: LogWriter,
        *,
        source: str,
        settings: QueueSettings | None = None,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = monotonic,
        observe: Callable[[float], None] | None = None,
    ) -> None:
        self.settings = settings or QueueSettings()
        self.outbox = Outbox(max_bytes=self.settings.max_bytes)
        self._log = log
        self._source = source
        self._now = now
        self._clock = clock
        self._observe = observe
        self._epochs: dict[int, str] = {}
        self._epoch_changed = asyncio.Event()
        self._claims: set[_PendingClaim] = set()
        self._is_unconfirmed = True
        self.confirmation = asyncio.Event()
        """Set when every shard's epoch is confirmed for the first time, or again after a change."""
        self._work = asyncio.Event()
        self._waiters: dict[AttemptBuffer, list[asyncio.Future[None]]] = {}
        self._outage_since: float | None = None
        self._rejection: str | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_cut_off(self) -> bool:
        """Whether the log could not be reached the last time."""
        return self._outage_since is not None

    @property
    def confirmed(self) -> tuple[str, ...]:
        """The epoch of each shard in which all that this writer keeps there is on record; else "".

        Once true of an epoch it stays true: what is claimed later is claimed in that epoch.
        """
        behind = {self._shard(draft) for draft in self.outbox if draft.awaits_tail}
        for one in self._claims:
            shard = self._shard(one.draft)
            if one.epoch not in {None, self._epochs.get(shard)}:
                behind.add(shard)
        shards = range(self._log.shards)
        return tuple("" if shard in behind else self._epochs.get(shard, "") for shard in shards)

    def _note_confirmation(self) -> None:
        if self._is_unconfirmed and all(self.confirmed):
            self._is_unconfirmed = False
            self.confirmation.set()

    async def __aenter__(self) -> Self:
        telemetry.watch(self.outbox)
        self._tasks = [asyncio.create_task(self._send_loop()), asyncio.create_task(self._release_loop())]
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self, *, patience: float = 30.0) -> int:
        """Flush for as long as `patience` allows, stop, and return how many events were left unsent."""
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                # Again: what was paid for in an attempt that is lost meanwhile is still to be sent.
                while unsent := [draft for draft in self.outbox if not draft.acknowledged]:
                    await asyncio.gather(*map(self.until_acknowledged, unsent))
        await end(self._tasks)
        telemetry.unwatch(self.outbox)
        if self.outbox.depth:
            logger.error("events left unsent", extra={"events": self.outbox.depth})
        return self.outbox.depth

    def own(self, evaluation_id: str, batch_id: str, *, attempt: int = 1) -> OwnedAttempt:
        """Own an attempt outright: for a writer that opens its attempts itself."""
        draft = self.outbox.keep(AttemptBuffer(evaluation_id, batch_id, attempt))
        return OwnedAttempt(self, draft, AttemptPosition(attempt=attempt - 1))

    async def claim(
        self, evaluation_id: str, batch_id: str, *, attempt: int, claim: p.Provisioning
    ) -> Claimed:
        """Ask to own an attempt the coordinator has opened; raises `AttemptLost` when refused."""
        [answer] = await self.claim_many([ClaimRequest(evaluation_id, batch_id, attempt, claim)])
        if isinstance(answer, AttemptLost):
            raise answer
        return answer

    async def claim_many(self, wishes: Sequence[ClaimRequest]) -> list[Claimed | AttemptLost]:
        """Ask to own several attempts in one round trip."""
        asked = []
        for wish in wishes:
            draft = AttemptBuffer(wish.evaluation_id, wish.batch_id, wish.attempt)
            asked.append(_PendingClaim(draft, self.number(draft, 1, wish.claim)))
        self._claims.update(asked)
        try:
            await self._ask_until_answered(asked)
        finally:
            self._claims.difference_update(asked)
        claimed = [self._claimed(one, wish) for one, wish in zip(asked, wishes, strict=True)]
        self._note_confirmation()
        return claimed

    def _claimed(self, asked: _PendingClaim, wish: ClaimRequest) -> Claimed | AttemptLost:
        draft, reply = asked.draft, asked.reply
        self._learn_epoch(draft, reply.epoch)
        answer = reply.results[0]
        if not answer.acknowledged:
            telemetry.refused(answer)
            return AttemptLost(draft.evaluation_id, draft.attempt, answer)
        self.outbox.keep(draft, asked.claim)
        return Claimed(
            OwnedAttempt(self, draft, AttemptPosition(Phase.PROVISIONING, wish.attempt, 1)), reply.stream
        )

    def keep_late(self, draft: AttemptBuffer, paid: p.Responded) -> None:
        """Send what was paid for in an attempt that is no longer ours."""
        record = self.number(draft, draft.last_sequence + 1, paid)
        self.outbox.keep_late(draft, [record], self._clock())
        self._work.set()

    def number(self, draft: AttemptBuffer, sequence: int, payload: p.AnyPayload) -> EncodedEvent:
        """Put what comes next in an attempt into its envelope."""
        event = make_event(
            payload,
            evaluation_id=draft.evaluation_id,
            batch_id=draft.batch_id,
            attempt=draft.attempt,
            sequence=sequence,
            occurred_at=self._now(),
            source=self._source,
            traceparent=draft.traceparent,
        )
        return EncodedEvent(event, encode(event))

    def add(self, draft: AttemptBuffer, record: EncodedEvent) -> None:
        """Hand an event to the sender."""
        self.outbox.add(draft, record, self._clock())
        self._work.set()

    async def until_acknowledged(self, draft: AttemptBuffer) -> None:
        """Wait until a draft is on record, or lost."""
        if draft.lost or draft.acknowledged:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(draft, []).append(waiter)
        await waiter

    async def _send_loop(self) -> None:
        backoff = Backoff(self.settings.longest_backoff)
        while True:
            await self._until_due()
            due = self.outbox.due(self._clock(), self.settings.linger, self.settings.max_calls)
            try:
                await self._send(due)
            except LogUnavailable as error:
                self._note_outage(error)
                await asyncio.sleep(backoff.next())
            except RedisCommandError as error:
                self._note_rejection(error)
                await asyncio.sleep(backoff.next())
            except Exception:
                # The sender must survive any error: without one, events would never be sent.
                logger.exception("could not send events; retrying")
                await asyncio.sleep(backoff.next())
            else:
                self._note_recovery()
                backoff.reset()

    async def _until_due(self) -> None:
        """Wait for the first thing to be due; something recorded meanwhile may be due sooner."""
        while True:
            self._work.clear()
            due_at = self.outbox.next_due(self.settings.linger)
            wait = None if due_at is None else due_at - self._clock()
            if wait is not None and wait <= 0:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._work.wait()

    async def _send(self, due: list[AttemptBuffer]) -> None:
        epochs = [await self._epoch_of(draft) for draft in due]
        calls = [self.outbox.send(draft, epoch) for draft, epoch in zip(due, epochs, strict=True)]
        try:
            replies = await self._log.append(calls)
        except BaseException:
            for draft in due:
                self.outbox.failed(draft)
            raise
        telemetry.waited(self._clock() - min(draft.in_flight_since for draft in due))
        for draft, reply in zip(due, replies, strict=True):
            self._answered(draft, reply)
        self._note_confirmation()

    def _answered(self, draft: AttemptBuffer, reply: AppendResponse) -> None:
        delay = self._clock() - draft.in_flight_since
        self.outbox.answered(draft, reply)
        self._learn_epoch(draft, reply.epoch)
        telemetry.count_refused(reply.results)
        if draft.lost:
            lost = {
                "evaluation_id": draft.evaluation_id,
                "batch_id": draft.batch_id,
                "attempt": draft.attempt,
                "answer": draft.lost,
            }
            logger.warning("attempt lost", extra=lost)
        elif self._observe:
            self._observe(delay)
        if draft.lost or draft.acknowledged:
            self._tell_waiters(draft)

    def _tell_waiters(self, draft: AttemptBuffer) -> None:
        for waiter in self._waiters.pop(draft, ()):
            if not waiter.done():
                waiter.set_result(None)

    def _shard(self, draft: AttemptBuffer) -> int:
        return shard_of(draft.evaluation_id, self._log.shards)

    async def _epoch_of(self, draft: AttemptBuffer) -> str:
        shard = self._shard(draft)
        if shard not in self._epochs:
            epoch = await self._log.epoch(draft.evaluation_id)
            self._epochs.setdefault(shard, epoch)  # a change meanwhile must be noticed, not overwritten
        return self._epochs[shard]

    def _learn_epoch(self, draft: AttemptBuffer, epoch: str) -> None:
        self._observe_epoch(self._shard(draft), epoch)

    def _observe_epoch(self, shard: int, epoch: str) -> None:
        """When Redis has lost a shard, put back all that this writer had there."""
        if self._epochs.setdefault(shard, epoch) == epoch:
            return
        self._epochs[shard] = epoch
        logger.warning("the log has forgotten: putting tails back", extra={"shard": shard})
        for other in self.outbox:
            if self._shard(other) == shard:
                self.outbox.forgotten(other)
        self._is_unconfirmed = True
        self._epoch_changed.set()  # the other shards may be of the same server
        self._work.set()

    async def _release_loop(self) -> None:
        backoff = Backoff(self.settings.longest_backoff)
        pause = interval = self.settings.release_interval
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._epoch_changed.wait()
            self._epoch_changed.clear()
            try:
                await self.release_settled()
            except LogUnavailable as error:
                self._note_outage(error)
                pause = min(backoff.next(), interval)
            except RedisCommandError as error:
                self._note_rejection(error)
                pause = interval
            else:
                pause = interval
                backoff.reset()

    async def release_settled(self) -> None:
        """Let go of what Postgres has; notice a loss even when there is nothing to say."""
        drafts, epochs = list(self.outbox), dict(self._epochs)
        # Asked before the marks: a tail may be put back meanwhile, and its stream was then not yet there.
        complete = {draft for draft in drafts if draft.acknowledged}
        marks = await self._log.committed([draft.evaluation_id for draft in drafts])
        # The epoch is read after the marks: if it has held, a missing stream expired and was not lost.
        for shard, epoch in enumerate(await self._log.epochs()):
            self._observe_epoch(shard, epoch)
        for draft, mark in zip(drafts, marks, strict=True):
            held = draft in complete and epochs.get(self._shard(draft)) == self._epochs[self._shard(draft)]
            if draft.is_settled_by(mark) and (mark or held):
                self.outbox.release(draft)
                self._tell_waiters(draft)
        self._note_confirmation()

    async def _ask_until_answered(self, asked: Sequence[_PendingClaim]) -> None:
        """Repeat claims through an outage: their nonces make the repetition harmless."""
        backoff = Backoff(self.settings.longest_backoff)
        waiting = list(asked)
        while waiting:
            try:
                epochs = [await self._epoch_of(one.draft) for one in waiting]
                calls = [
                    Append(one.draft.evaluation_id, [one.claim], epoch, Mode.CLAIM)
                    for one, epoch in zip(waiting, epochs, strict=True)
                ]
                for one, epoch in zip(waiting, epochs, strict=True):
                    one.epoch = epoch if one.epoch is None else one.epoch
                replies = await self._log.append(calls)
            except LogUnavailable as error:
                for one in waiting:
                    one.fate_unknown = True
                self._note_outage(error)
                await asyncio.sleep(backoff.next())
                continue
            for one, reply in zip(waiting, replies, strict=True):
                one.reply = reply
            waiting = [one for one in waiting if self._must_ask_again(one)]

    def _must_ask_again(self, asked: _PendingClaim) -> bool:
        """Whether a claim was accepted before Redis started again, perhaps.

        Dropped now, nobody would know that the attempt is ours.
        """
        if asked.reply.results[0] is not AppendResult.EPOCH or not asked.fate_unknown:
            return False
        asked.fate_unknown = False
        self._learn_epoch(asked.draft, asked.reply.epoch)
        return True

    def _note_outage(self, error: LogUnavailable) -> None:
        if self._outage_since is None:
            self._outage_since = self._clock()
            logger.warning("the log is unavailable: holding events", extra={"error": str(error)})

    def _note_rejection(self, error: RedisCommandError) -> None:
        """Log a permanent error once; events are kept and sent again, as an operator may cure its cause."""
        if self._outage_since is None:
            self._outage_since = self._clock()
        if self._rejection != str(error):
            self._rejection = str(error)
            logger.error("Redis rejects this writer's events: holding them", extra={"error": str(error)})

    def _note_recovery(self) -> None:
        self._rejection = None
        if self._outage_since is not None:
            outage = round(self._clock() - self._outage_since, 3)
            self._outage_since = None
            logger.info("the log is back", extra={"outage_s": outage})
