"""The event log in memory: the rules of append.lua in Python, for unit tests and simulation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from eventlog import keys
from eventlog.codec import RawEntry, fields_of
from eventlog.events import EventKey
from eventlog.lifecycle import CLOSING_TYPES
from eventlog.log import (
    EXPIRY_SECONDS,
    Append,
    AppendResponse,
    AppendResult,
    CommitMark,
    EncodedEvent,
    EventLog,
    Mode,
)

WHOLE_OR_NOT = frozenset({Mode.TAIL, Mode.WITHDRAWAL})


@dataclass(slots=True)
class _Stream:
    entries: list[RawEntry] = field(default_factory=list)
    newest: int = 0
    closing: int | None = None
    epoch: str = ""
    bodies: dict[int, bytes] = field(default_factory=dict)
    conflicts: set[bytes] = field(default_factory=set)
    committed: EventKey = (0, -1)
    expires_ms: float = float("inf")

    def copy(self) -> "_Stream":
        return _Stream(
            list(self.entries),
            self.newest,
            self.closing,
            self.epoch,
            dict(self.bodies),
            set(self.conflicts),
            self.committed,
            self.expires_ms,
        )


class MemoryEventLog(EventLog):
    """`EventLog` without a server; `clock_ms` is its Redis TIME."""

    def __init__(self, clock_ms: Callable[[], int], *, shards: int = keys.DEFAULT_SHARDS) -> None:
        self.shards = shards
        # What no reader has taken yet; a reader takes from the front.
        self.wake_ups: list[list[str]] = [[] for _ in range(shards)]
        self._clock_ms = clock_ms
        self._streams: dict[str, _Stream] = {}
        self._lives = 0
        self.losses = 0
        """The half of an epoch that is lost with the data; the other one changes with every start."""
        self._last_id = (0, 0)

    def lose_everything(self) -> None:
        """Act as a Redis that was flushed, or restarted without its data."""
        self._streams.clear()
        self.wake_ups = [[] for _ in range(self.shards)]
        self.losses += 1
        self.restart()

    def restart(self) -> None:
        """Act as a Redis that was restarted with all its data."""
        self._lives += 1

    @override
    async def epoch(self, evaluation_id: str) -> str:
        return (await self.epochs())[keys.shard_of(evaluation_id, self.shards)]

    @override
    async def epochs(self) -> list[str]:
        return [f"{shard:02}/{self.losses}-{self._lives}" for shard in range(self.shards)]

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        """Append events, each call atomically."""
        return [await self._append(call) for call in calls]

    async def _append(self, call: Append) -> AppendResponse:
        epoch = await self.epoch(call.evaluation_id)
        if call.epoch not in {"", epoch}:
            return AppendResponse((AppendResult.EPOCH,) * len(call.records), epoch)
        before = self._alive(call.evaluation_id)
        after = before.copy()
        answers = tuple(self._add(after, record, call.mode, epoch) for record in call.records)
        whole = all(answer.acknowledged for answer in answers)
        wrote = len(after.entries) > len(before.entries) and (call.mode not in WHOLE_OR_NOT or whole)
        if wrote:
            self._streams[call.evaluation_id] = after
        if _is_news(call.mode, wrote=wrote, whole=whole):
            unread = self.wake_ups[keys.shard_of(call.evaluation_id, self.shards)]
            if not before.entries or call.evaluation_id not in unread:
                unread.append(call.evaluation_id)
        claimed = call.mode is Mode.CLAIM and answers[0].acknowledged
        return AppendResponse(answers, epoch, tuple(after.entries) if claimed else ())

    def _add(self, stream: _Stream, record: EncodedEvent, mode: Mode, epoch: str) -> AppendResult:
        answer = _check(stream, record, mode, epoch)
        kept_conflict = (
            answer is AppendResult.CONFLICT
            and mode is not Mode.CLAIM
            and record.body not in stream.conflicts
        )
        if kept_conflict:
            stream.conflicts.add(record.body)
        if answer is AppendResult.OK:
            _learn(stream, record, epoch)
        if answer is AppendResult.OK or kept_conflict:
            stream.entries.append((self._next_id(), _fields(record)))
        return answer

    @override
    async def read(self, evaluation_ids: Sequence[str], *, limit: int) -> list[list[RawEntry]]:
        return [self._alive(evaluation_id).entries[:limit] for evaluation_id in evaluation_ids]

    async def closing(self, evaluation_ids: Sequence[str]) -> list[bool]:
        """Return for each evaluation whether its newest attempt is closed."""
        return [self._alive(evaluation_id).closing is not None for evaluation_id in evaluation_ids]

    @override
    async def settle(self, marks: Sequence[CommitMark]) -> None:
        for mark in marks:
            stream = self._alive(mark.evaluation_id)
            if (mark.attempt, mark.sequence) < stream.committed:
                continue  # another worker's mark has overtaken it
            stream.committed = (mark.attempt, mark.sequence)
            if not mark.ended:
                stream.expires_ms = float("inf")
            elif stream.newest <= mark.attempt:
                stream.expires_ms = self._clock_ms() + EXPIRY_SECONDS * 1000

    @override
    async def committed(self, evaluation_ids: Sequence[str]) -> list[EventKey | None]:
        streams = [self._alive(evaluation_id) for evaluation_id in evaluation_ids]
        return [stream.committed if stream.entries else None for stream in streams]

    @override
    async def now_ms(self) -> int:
        return self._clock_ms()

    def _alive(self, evaluation_id: str) -> _Stream:
        stream = self._streams.get(evaluation_id)
        if stream and stream.expires_ms <= self._clock_ms():
            del self._streams[evaluation_id]
            stream = None
        return stream or _Stream()

    def _next_id(self) -> bytes:
        now = self._clock_ms()
        last, count = self._last_id
        self._last_id = (last, count + 1) if now <= last else (now, 0)
        return b"%d-%d" % self._last_id


def _is_news(mode: Mode, *, wrote: bool, whole: bool) -> bool:
    """Whether to write a wake-up: for a new event, or for the mark of a re-appended tail."""
    return whole if mode is Mode.TAIL else wrote and mode not in {Mode.OPENING, Mode.CLAIM}


def _check(stream: _Stream, record: EncodedEvent, mode: Mode, epoch: str) -> AppendResult:
    attempt, sequence = record.event.key
    if attempt < stream.newest:
        return AppendResult.OK if mode is Mode.LATE else AppendResult.FENCED
    if attempt == stream.newest:
        if sequence in stream.bodies:
            same = stream.bodies[sequence] == record.body
            return AppendResult.DUPLICATE if same else AppendResult.CONFLICT
        if stream.closing is not None and sequence > stream.closing:
            return AppendResult.CLOSED
    if sequence == 0 or mode is Mode.TAIL:
        return AppendResult.OK
    if attempt > stream.newest or (sequence == 1 and 0 not in stream.bodies):
        return AppendResult.FENCED
    return AppendResult.EPOCH if sequence == 1 and stream.epoch != epoch else AppendResult.OK


def _learn(stream: _Stream, record: EncodedEvent, epoch: str) -> None:
    attempt, sequence = record.event.key
    if attempt < stream.newest:
        return
    if attempt > stream.newest:
        stream.newest, stream.closing, stream.epoch, stream.bodies = attempt, None, "", {}
        stream.expires_ms = float("inf")
    stream.bodies[sequence] = record.body
    if sequence == 0:
        stream.epoch, stream.expires_ms = epoch, float("inf")
    if record.event.type in CLOSING_TYPES:
        stream.closing = min(sequence, stream.closing if stream.closing is not None else sequence)


def _fields(record: EncodedEvent) -> list[bytes]:
    flat: list[bytes] = []
    for name, value in fields_of(record.event, record.body).items():
        flat += (name.encode(), value if isinstance(value, bytes) else str(value).encode())
    return flat
