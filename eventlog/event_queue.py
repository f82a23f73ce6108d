"""The writer's event queue: numbers events, appends them in batches, and keeps them through an outage.

Recording never waits. One sender takes everything that is due, of all attempts, into one round trip;
what is recorded meanwhile makes up the next. Only a claim (sequence 1 of an attempt) waits for its
response: its writer must know that it owns the attempt before it calls the target.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
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
from eventlog.keys import shard_of
from eventlog.lifecycle import AttemptPosition, Command, Fact, OpenAttempt, Phase, RecordProgress, decide
from eventlog.log import Append, AppendResponse, AppendResult, EncodedEvent, LogUnavailable, LogWriter, Mode
from eventlog.outbox import AttemptBuffer, Outbox
from eventlog.redis_errors import RedisCommandError
from eventlog.tasks import end

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Settings of an event queue; the defaults suit an executor."""

    linger: float = 0.002
    """Seconds an event waits for others to share its round trip."""
    max_calls: int = 500
    """Attempts in one round trip."""
    max_bytes: int = 10 * 1024 * 1024
    """Bytes that unsent events and tails may hold before no further attempt is claimed (backpressure)."""
    release_interval: float = 1.0
    """Seconds between two reads of the commit marks."""
    longest_backoff: float = 1.0


class AttemptLost(Exception):  # noqa: N818 - what happened to the attempt
    """Another writer has ended this attempt: stop, and drop the work."""

    def __init__(self, evaluation_id: str, attempt: int, answer: AppendResult) -> None:
        super().__init__(f"attempt {attempt} of {evaluation_id} belongs to another writer: {answer}")
        self.evaluation_id = evaluation_id
        self.attempt = attempt
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Claimed:
    """An attempt that this writer owns, with its stream: a response in it is not requested again."""

    attempt: "OwnedAttempt"
    stream: tuple[RawEntry, ...]


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A request to own an attempt."""

    evaluation_id: str
    batch_id: str
    attempt: int
    claim: p.Provisioning


NO_RESPONSE = AppendResponse((), "")


@dataclass(slots=True, eq=False)
class _PendingClaim:
    """A claim in flight, and the log's response to it."""

    buffer: AttemptBuffer
    claim: EncodedEvent
    response: AppendResponse = NO_RESPONSE
    outcome_unknown: bool = False
    epoch: str | None = None
    """The epoch that it was first sent in: the log may have accepted it there."""


class OwnedAttempt:
    """One attempt that this writer alone writes to."""

    def __init__(self, queue: "EventQueue", buffer: AttemptBuffer, position: AttemptPosition) -> None:
        self._queue = queue
        self._buffer = buffer
        self._position = position

    @property
    def depth(self) -> int:
        """Events recorded but not yet acknowledged."""
        return self._buffer.depth

    def set_traceparent(self, traceparent: str | None) -> None:
        """Give the events that are recorded from now on a trace context."""
        self._buffer.traceparent = traceparent

    def record(self, fact: Fact) -> None:
        """Record the next event; returns at once.

        Raises `IllegalTransition` for what can't follow, `AttemptLost` if another writer owns the attempt.
        """
        self._write(RecordProgress(fact))

    def open(self, opening: p.Queued) -> None:
        """Write sequence 0, as a writer without a coordinator does."""
        if self._position.sequence >= 0:
            raise ValueError("the attempt is open; own the next one to open it")
        self._write(OpenAttempt(opening))

    def record_late(self, paid: p.Responded) -> None:
        """Record a response that came when the attempt was already lost: it was paid for.

        It changes nothing but the cost of the batch. What was recorded before is kept without this call.
        """
        if self._buffer.lost:
            self._queue.add_late(self._buffer, paid)

    async def acknowledged(self) -> None:
        """Wait until the log has acknowledged everything recorded."""
        await self._queue.until_acknowledged(self._buffer)
        self._check()

    def _write(self, command: Command) -> None:
        self._check()
        decision = decide(self._position, command)
        record = self._queue.number(self._buffer, decision.after.sequence, decision.payload)
        self._position = decision.after
        self._queue.add(self._buffer, record)

    def _check(self) -> None:
        if self._buffer.lost:
            raise AttemptLost(self._buffer.evaluation_id, self._buffer.attempt, self._buffer.lost)


class EventQueue:
    """The events of one writer, for any number of attempts at once."""

    def __init__(  # noqa: PLR0913 - two clocks and an observer, all optional
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
    def is_disconnected(self) -> bool:
        """Whether the last request to the log failed."""
        return self._outage_since is not None

    @property
    def confirmed(self) -> tuple[str, ...]:
        """The epoch of each shard in which all buffers of this writer are acknowledged; else "".

        Once true of an epoch it stays true: what is claimed later is claimed in that epoch.
        """
        behind = {self._shard(buffer) for buffer in self.outbox if buffer.awaits_reappend}
        for one in self._claims:
            shard = self._shard(one.buffer)
            if one.epoch not in {None, self._epochs.get(shard)}:
                behind.add(shard)
        shards = range(self._log.shards)
        return tuple("" if shard in behind else self._epochs.get(shard, "") for shard in shards)

    def _note_confirmation(self) -> None:
        if self._is_unconfirmed and all(self.confirmed):
            self._is_unconfirmed = False
            self.confirmation.set()

    async def __aenter__(self) -> Self:
        telemetry.register(self.outbox)
        self._tasks = [asyncio.create_task(self._send_loop()), asyncio.create_task(self._release_loop())]
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def aclose(self, *, grace: float = 30.0) -> int:
        """Flush for at most `grace` seconds, stop, and return how many events were left unsent."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                # Again: what was paid for in an attempt that was lost meanwhile is still unsent.
                while unsent := [buffer for buffer in self.outbox if not buffer.acknowledged]:
                    await asyncio.gather(*map(self.until_acknowledged, unsent))
        await end(self._tasks)
        telemetry.GAUGES.unregister(self.outbox)
        if self.outbox.depth:
            logger.error("events left unsent at shutdown", extra={"events": self.outbox.depth})
        return self.outbox.depth

    def own(self, evaluation_id: str, batch_id: str, *, attempt: int = 1) -> OwnedAttempt:
        """Own an attempt without a claim: for a writer that opens its attempts itself."""
        buffer = self.outbox.track(AttemptBuffer(evaluation_id, batch_id, attempt))
        return OwnedAttempt(self, buffer, AttemptPosition(attempt=attempt - 1))

    async def claim(
        self, evaluation_id: str, batch_id: str, *, attempt: int, claim: p.Provisioning
    ) -> Claimed:
        """Claim an attempt that the coordinator has opened; raises `AttemptLost` when refused."""
        [outcome] = await self.claim_many([ClaimRequest(evaluation_id, batch_id, attempt, claim)])
        if isinstance(outcome, AttemptLost):
            raise outcome
        return outcome

    async def claim_many(self, requests: Sequence[ClaimRequest]) -> list[Claimed | AttemptLost]:
        """Claim several attempts in one round trip."""
        claims = []
        for request in requests:
            buffer = AttemptBuffer(request.evaluation_id, request.batch_id, request.attempt)
            claims.append(_PendingClaim(buffer, self.number(buffer, 1, request.claim)))
        self._claims.update(claims)
        try:
            await self._send_claims(claims)
        finally:
            self._claims.difference_update(claims)
        claimed = [self._claimed(one, request) for one, request in zip(claims, requests, strict=True)]
        self._note_confirmation()
        return claimed

    def _claimed(self, pending: _PendingClaim, request: ClaimRequest) -> Claimed | AttemptLost:
        buffer, response = pending.buffer, pending.response
        self._learn_epoch(buffer, response.epoch)
        result = response.results[0]
        if not result.acknowledged:
            telemetry.refused(result)
            return AttemptLost(buffer.evaluation_id, buffer.attempt, result)
        self.outbox.track(buffer, pending.claim)
        return Claimed(
            OwnedAttempt(self, buffer, AttemptPosition(Phase.PROVISIONING, request.attempt, 1)),
            response.stream,
        )

    def add_late(self, buffer: AttemptBuffer, paid: p.Responded) -> None:
        """Send what was paid for in an attempt that another writer has ended."""
        record = self.number(buffer, buffer.last_sequence + 1, paid)
        self.outbox.track_late(buffer, [record], self._clock())
        self._work.set()

    def number(self, buffer: AttemptBuffer, sequence: int, payload: p.AnyPayload) -> EncodedEvent:
        """Make the next event of an attempt, with its envelope."""
        event = make_event(
            payload,
            evaluation_id=buffer.evaluation_id,
            batch_id=buffer.batch_id,
            attempt=buffer.attempt,
            sequence=sequence,
            occurred_at=self._now(),
            source=self._source,
            traceparent=buffer.traceparent,
        )
        return EncodedEvent(event, encode(event))

    def add(self, buffer: AttemptBuffer, record: EncodedEvent) -> None:
        """Pass an event to the sender."""
        self.outbox.add(buffer, record, self._clock())
        self._work.set()

    async def until_acknowledged(self, buffer: AttemptBuffer) -> None:
        """Wait until a buffer is acknowledged, or lost."""
        if buffer.lost or buffer.acknowledged:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(buffer, []).append(waiter)
        await waiter

    async def _send_loop(self) -> None:
        backoff = Backoff(self.settings.longest_backoff)
        while True:
            await self._until_due()
            due = self.outbox.due(self._clock(), self.settings.linger, self.settings.max_calls)
            try:
                await self._send(due)
            except LogUnavailable as error:
                self._log_outage(error)
                await asyncio.sleep(backoff.next())
            except RedisCommandError as error:
                self._note_rejection(error)
                await asyncio.sleep(backoff.next())
            except Exception:
                # The sender must survive any error: without one, events would never be sent.
                logger.exception("could not send events; retrying")
                await asyncio.sleep(backoff.next())
            else:
                if self.is_disconnected:
                    self._note_recovery()
                    backoff.reset()

    async def _until_due(self) -> None:
        """Wait until a buffer is due; one that is recorded meanwhile may be due sooner."""
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
        epochs = [await self._epoch_of(buffer) for buffer in due]
        calls = [self.outbox.send(buffer, epoch) for buffer, epoch in zip(due, epochs, strict=True)]
        try:
            responses = await self._log.append(calls)
        except BaseException:
            for buffer in due:
                self.outbox.requeue(buffer)
            raise
        telemetry.waited(self._clock() - min(buffer.in_flight_since for buffer in due))
        for buffer, response in zip(due, responses, strict=True):
            self._apply(buffer, response)
        self._note_confirmation()

    def _apply(self, buffer: AttemptBuffer, response: AppendResponse) -> None:
        delay = self._clock() - buffer.in_flight_since
        self.outbox.apply(buffer, response)
        self._learn_epoch(buffer, response.epoch)
        telemetry.count_refused(response.results)
        if buffer.lost:
            lost = {
                "evaluation_id": buffer.evaluation_id,
                "batch_id": buffer.batch_id,
                "attempt": buffer.attempt,
                "answer": buffer.lost,
            }
            logger.warning("attempt lost", extra=lost)
        elif self._observe:
            self._observe(delay)
        if buffer.lost or buffer.acknowledged:
            self._resolve_waiters(buffer)

    def _resolve_waiters(self, buffer: AttemptBuffer) -> None:
        for waiter in self._waiters.pop(buffer, ()):
            if not waiter.done():
                waiter.set_result(None)

    def _shard(self, buffer: AttemptBuffer) -> int:
        return shard_of(buffer.evaluation_id, self._log.shards)

    async def _epoch_of(self, buffer: AttemptBuffer) -> str:
        shard = self._shard(buffer)
        if shard not in self._epochs:
            epoch = await self._log.epoch(buffer.evaluation_id)
            self._epochs.setdefault(shard, epoch)  # a change meanwhile must be noticed, not overwritten
        return self._epochs[shard]

    def _learn_epoch(self, buffer: AttemptBuffer, epoch: str) -> None:
        self._observe_epoch(self._shard(buffer), epoch)

    def _observe_epoch(self, shard: int, epoch: str) -> None:
        """When Redis has lost a shard, re-append all that this writer had there."""
        if self._epochs.setdefault(shard, epoch) == epoch:
            return
        self._epochs[shard] = epoch
        logger.warning(
            "Redis lost data (epoch changed): re-appending buffered events", extra={"shard": shard}
        )
        for other in self.outbox:
            if self._shard(other) == shard:
                self.outbox.reappend(other)
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
                await self.release_committed()
            except LogUnavailable as error:
                self._log_outage(error)
                pause = min(backoff.next(), interval)
            except RedisCommandError as error:
                self._note_rejection(error)
                pause = interval
            else:
                pause = interval
                backoff.reset()

    async def release_committed(self) -> None:
        """Release what Postgres has; a loss of data is noticed even without an append."""
        buffers, epochs = list(self.outbox), dict(self._epochs)
        # Read before the marks: a tail may be re-appended meanwhile, and its stream was then not yet there.
        complete = {buffer for buffer in buffers if buffer.acknowledged}
        marks = await self._log.committed([buffer.evaluation_id for buffer in buffers])
        # The epoch is read after the marks: if it has held, a missing stream expired and was not lost.
        for shard, epoch in enumerate(await self._log.epochs()):
            self._observe_epoch(shard, epoch)
        for buffer, mark in zip(buffers, marks, strict=True):
            if buffer.is_committed_by(mark) and (
                mark or (buffer in complete and self._has_held(buffer, epochs))
            ):
                self.outbox.release(buffer)
                self._resolve_waiters(buffer)
        self._note_confirmation()

    def _has_held(self, buffer: AttemptBuffer, epochs: Mapping[int, str]) -> bool:
        """Whether the epoch of a buffer's shard is still the one read before."""
        shard = self._shard(buffer)
        return epochs.get(shard) == self._epochs[shard]

    async def _send_claims(self, claims: Sequence[_PendingClaim]) -> None:
        """Repeat claims through an outage: their nonces make the repetition idempotent."""
        backoff = Backoff(self.settings.longest_backoff)
        waiting = list(claims)
        while waiting:
            try:
                epochs = [await self._epoch_of(one.buffer) for one in waiting]
                calls = [
                    Append(one.buffer.evaluation_id, [one.claim], epoch, Mode.CLAIM)
                    for one, epoch in zip(waiting, epochs, strict=True)
                ]
                for one, epoch in zip(waiting, epochs, strict=True):
                    one.epoch = epoch if one.epoch is None else one.epoch
                responses = await self._log.append(calls)
            except LogUnavailable as error:
                for one in waiting:
                    one.outcome_unknown = True
                self._log_outage(error)
                await asyncio.sleep(backoff.next())
                continue
            for one, response in zip(waiting, responses, strict=True):
                one.response = response
            waiting = [one for one in waiting if self._must_repeat(one)]

    def _must_repeat(self, pending: _PendingClaim) -> bool:
        """Whether Redis may have accepted a claim before it restarted.

        If it were dropped now, the attempt would have an owner that does not know of it.
        """
        if pending.response.results[0] is not AppendResult.EPOCH or not pending.outcome_unknown:
            return False
        pending.outcome_unknown = False
        self._learn_epoch(pending.buffer, pending.response.epoch)
        return True

    def _log_outage(self, error: LogUnavailable) -> None:
        if self._outage_since is None:
            self._outage_since = self._clock()
            logger.warning("Redis is unavailable: holding events", extra={"error": str(error)})

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
            logger.info("Redis is available again: sending held events", extra={"outage_s": outage})
