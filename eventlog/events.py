"""The envelope: one frozen model per event type, a discriminated union over `type`."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from domain.ids import Name
from eventlog import payloads as p
from eventlog.time_range import EARLIEST, LATEST

SCHEMA_VERSION: Literal[3] = 3
"""The version this code writes; older ones are upcast when read, newer ones are quarantined."""

MAX_ATTEMPT = 1_000_000
MAX_SEQUENCE = 1_000_000

_FIRST_YEAR, _LAST_YEAR = EARLIEST.year, LATEST.year

EventKey = tuple[int, int]
"""(attempt, sequence): with the evaluation's id it names an event for ever."""


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class Envelope:
    """What every event has in common."""

    evaluation_id: Name
    batch_id: Name
    attempt: int = Field(ge=1, le=MAX_ATTEMPT)
    sequence: int = Field(ge=0, le=MAX_SEQUENCE)
    occurred_at: AwareDatetime
    source: Name
    traceparent: str | None = Field(default=None, max_length=128)
    schema_version: Literal[3]

    @property
    def key(self) -> EventKey:
        """The event's place in its evaluation."""
        return self.attempt, self.sequence


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class QueuedEvent(Envelope):
    """An attempt was opened."""

    type: Literal["queued"] = "queued"
    data: p.Queued


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class CancelledEvent(Envelope):
    """The evaluation was cancelled."""

    type: Literal["cancelled"] = "cancelled"
    data: p.Cancelled


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class ProvisioningEvent(Envelope):
    """An executor claimed the attempt."""

    type: Literal["provisioning"] = "provisioning"
    data: p.Provisioning


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class RunningEvent(Envelope):
    """The target started."""

    type: Literal["running"] = "running"
    data: p.Running


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class RespondedEvent(Envelope):
    """The target answered."""

    type: Literal["responded"] = "responded"
    data: p.Responded


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class ScoredEvent(Envelope):
    """An evaluator judged the answer."""

    type: Literal["scored"] = "scored"
    data: p.Scored


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class CompletedEvent(Envelope):
    """The evaluation has its verdict."""

    type: Literal["completed"] = "completed"
    data: p.Completed


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class RetryingEvent(Envelope):
    """The attempt ended; another will follow."""

    type: Literal["retrying"] = "retrying"
    data: p.Retrying


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class FailedEvent(Envelope):
    """The evaluation failed."""

    type: Literal["failed"] = "failed"
    data: p.Failed


@dataclass(frozen=True, slots=True, kw_only=True, config=p.STRICT)
class TimedOutEvent(Envelope):
    """A limit passed."""

    type: Literal["timed_out"] = "timed_out"
    data: p.TimedOut


Event = (
    QueuedEvent
    | CancelledEvent
    | ProvisioningEvent
    | RunningEvent
    | RespondedEvent
    | ScoredEvent
    | CompletedEvent
    | RetryingEvent
    | FailedEvent
    | TimedOutEvent
)
"""Any event."""

EVENT_CLASSES: dict[str, type[Event]] = {
    cls.__dataclass_fields__["type"].default: cls
    for cls in (
        QueuedEvent,
        CancelledEvent,
        ProvisioningEvent,
        RunningEvent,
        RespondedEvent,
        ScoredEvent,
        CompletedEvent,
        RetryingEvent,
        FailedEvent,
        TimedOutEvent,
    )
}
"""Event type → its class; the order is that of an evaluation's life."""

EVENT_ADAPTER: TypeAdapter[Event] = TypeAdapter(
    Annotated[Event, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)

_TYPE_OF_PAYLOAD: dict[type[p.AnyPayload], str] = {
    cls.__dataclass_fields__["data"].type: name for name, cls in EVENT_CLASSES.items()
}


def is_in_range(moment: datetime) -> bool:
    """Whether an event may carry this time."""
    return _FIRST_YEAR < moment.year < _LAST_YEAR


def type_of(payload: p.AnyPayload) -> str:
    """Name the event type that carries this payload."""
    return _TYPE_OF_PAYLOAD[type(payload)]
