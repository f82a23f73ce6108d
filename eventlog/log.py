"""The contract of the event log; `tests/conformance` checks every implementation against it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from eventlog.codec import RawEntry
from eventlog.events import Event, EventKey

EXPIRY_SECONDS = 60
"""How long an ended evaluation's stream stays; longer than any coordinator may stall."""


class AppendResult(StrEnum):
    """The result of one event's append."""

    OK = "OK"
    DUPLICATE = "DUPLICATE"
    CONFLICT = "CONFLICT"
    FENCED = "FENCED"
    CLOSED = "CLOSED"
    EPOCH = "EPOCH"

    @property
    def acknowledged(self) -> bool:
        """Whether the log holds the event now."""
        return self in {AppendResult.OK, AppendResult.DUPLICATE}


class Mode(StrEnum):
    """How an append is to be checked."""

    NORMAL = "normal"
    TAIL = "tail"
    """All or nothing: an owner re-appends its attempt after Redis lost it."""
    CLAIM = "claim"
    """One event, sequence 1, which decides the owner of an attempt; the response includes the stream."""
    WITHDRAWAL = "withdrawal"
    """A claim and its end in one: all or nothing, and checked as a claim is."""
    OPENING = "opening"
    """Events that Postgres has already: no wake-up is written."""
    LATE = "late"
    """What was paid for in an attempt that another writer has ended: kept, and no more."""


class EncodedEvent(NamedTuple):
    """An event with its JSON."""

    event: Event
    body: bytes


@dataclass(frozen=True, slots=True)
class Append:
    """One call: events of one evaluation, and the epoch that their writer last read."""

    evaluation_id: str
    records: Sequence[EncodedEvent]
    epoch: str
    mode: Mode = Mode.NORMAL


@dataclass(frozen=True, slots=True)
class AppendResponse:
    """One result for each event, the current epoch, and for a claim the stream."""

    results: tuple[AppendResult, ...]
    epoch: str
    stream: tuple[RawEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitMark:
    """How far Postgres has an evaluation; `ended` lets its stream expire."""

    evaluation_id: str
    attempt: int
    sequence: int
    ended: bool


class LogUnavailable(Exception):  # noqa: N818 - what callers catch to wait and try again
    """The log did not respond: the request may or may not have been executed. Retry it."""


class CommitProgress(Protocol):
    """How far the tables have come, as the log knows it."""

    shards: int

    async def committed(self, evaluation_ids: Sequence[str]) -> list[EventKey | None]:
        """Return how far Postgres has each evaluation; None where the stream is gone."""
        ...


class LogWriter(CommitProgress, Protocol):
    """The log as writers use it."""

    async def epoch(self, evaluation_id: str) -> str:
        """Return the epoch of the shard that holds this evaluation."""
        ...

    async def epochs(self) -> list[str]:
        """Return the epoch of every shard."""
        ...

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        """Append events, each call atomically; calls of several evaluations share a round trip."""
        ...


class LogReader(CommitProgress, Protocol):
    """The log as readers use it."""

    async def read(self, evaluation_ids: Sequence[str], *, limit: int) -> list[list[RawEntry]]:
        """Return each evaluation's entries in order of arrival, at most `limit` of each."""
        ...

    async def closing(self, evaluation_ids: Sequence[str]) -> list[bool]:
        """Return for each evaluation whether its newest attempt is closed, without reading its stream."""
        ...

    async def settle(self, marks: Sequence[CommitMark]) -> None:
        """Record how far Postgres has come, and let ended evaluations' streams expire."""
        ...

    async def now_ms(self) -> int:
        """Return the log's own clock, the one its entry ids are made of."""
        ...


class EventLog(LogWriter, LogReader, Protocol):
    """An ordered log for each evaluation, and wake-ups that name those with new events."""
