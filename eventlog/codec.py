"""The codec between events and bytes: caps before parsing, old versions upcast, NULs replaced.

Reading never raises: an entry is either an `Entry` or a `RejectedEntry` with its reason, so that one bad
event cannot keep its neighbours from being read.

What comes from a stream (`read_entry`) is held to more than the schema: values have the JSON types of the
protocol, times and numbers are such that PostgreSQL and every reader can represent them. What is stored
already (`decode`) is read leniently, its times clamped: one odd row must not fail a page of them.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import rebuild_dataclass
from pydantic_core import PydanticSerializationError, from_json, to_json

from eventlog import payloads as p
from eventlog.events import (
    EVENT_ADAPTER,
    EVENT_CLASSES,
    SCHEMA_VERSION,
    Event,
    EventKey,
    QueuedEvent,
    RetryingEvent,
    is_in_range,
    type_of,
)
from eventlog.redacted_payloads import redact_payload
from eventlog.time_range import clamped
from eventlog.upcast import CannotUpcast, to_current

MAX_EVENT_BYTES = 1024 * 1024
"""The whole envelope as JSON."""

_FIELDS = [b"attempt", b"sequence", b"type", b"event"]
_NUL_ESCAPE = b"\\u0000"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_LARGE_EXPONENT = re.compile(rb"[eE]\+?[0-9]{3}")
"""Where a number may be written that no float can hold."""
_WRITTEN_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})"
)
"""RFC 3339, which PostgreSQL casts as well."""

RawEntry = tuple[bytes, Sequence[bytes]]
"""A stream entry as the wire has it: its id, and fields and values in turn."""


@cache
def _validator() -> Callable[..., Event]:
    # Straight to the validator: the adapter around it costs as much again for each small event.
    return EVENT_ADAPTER.validator.validate_json


@cache
def _serializer(event_type: str) -> Callable[..., bytes]:
    # By the class: the union would look for the right one each time, which costs as much again.
    return TypeAdapter(EVENT_CLASSES[event_type]).serializer.to_json


def build() -> None:
    """Build every validator and serializer now: once before processes fork, instead of in each of them."""
    _validator()
    for event_type, cls in EVENT_CLASSES.items():
        _serializer(event_type)
        rebuild_dataclass(cls)  # type: ignore[arg-type]  # a dataclass of pydantic, whose type is private
        rebuild_dataclass(cls.__dataclass_fields__["data"].type)


class QuarantineReason(StrEnum):
    """Why something was put into quarantine."""

    GARBAGE = "garbage"
    UNKNOWN_TYPE = "unknown_type"
    FUTURE_VERSION = "future_version"
    INVALID = "invalid"
    OVERSIZE = "oversize"
    MISMATCH = "mismatch"
    CONFLICT = "conflict"
    ILLEGAL = "illegal"
    BAD_WAKE_UP = "bad_wake_up"
    UNSTORABLE = "unstorable"
    OVERLONG = "overlong"


class Entry(NamedTuple):
    """One readable event, where it arrived, and the bytes to keep."""

    id: bytes
    event: Event
    body: bytes

    @property
    def key(self) -> EventKey:
        """The event's place in its evaluation."""
        return self.event.attempt, self.event.sequence


class RejectedEntry(NamedTuple):
    """One entry that could not be taken as an event."""

    id: bytes
    reason: QuarantineReason
    detail: str
    body: bytes


class OversizeEvent(ValueError):  # noqa: N818 - reads as the thing it is
    """An event whose JSON is larger than `MAX_EVENT_BYTES`."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the event is {size} bytes long, {MAX_EVENT_BYTES} are allowed")
        self.size = size


def make_event(  # noqa: PLR0913 - an envelope has this many fields
    payload: p.AnyPayload,
    *,
    evaluation_id: str,
    batch_id: str,
    attempt: int,
    sequence: int,
    occurred_at: datetime,
    source: str,
    traceparent: str | None = None,
) -> Event:
    """Put a payload, without the secrets of this process, into its envelope: the one way to an event."""
    payload = redact_payload(payload)
    event_type = type_of(payload)
    return EVENT_CLASSES[event_type](
        evaluation_id=evaluation_id,
        batch_id=batch_id,
        attempt=attempt,
        sequence=sequence,
        occurred_at=occurred_at,
        source=source,
        traceparent=traceparent,
        schema_version=SCHEMA_VERSION,
        data=payload,  # type: ignore[arg-type]  # the table pairs each payload with its event
    )


def encode(event: Event) -> bytes:
    """Turn an event into the JSON that travels and is kept."""
    try:
        body = _serializer(event.type)(event, exclude_none=True)
    except PydanticSerializationError:  # lone surrogates, which no UTF-8 can hold
        body = to_json(_scrubbed(EVENT_ADAPTER.dump_python(event, exclude_none=True)))
    if _NUL_ESCAPE in body:
        body = to_json(_scrubbed(from_json(body)))
    if len(body) > MAX_EVENT_BYTES:
        raise OversizeEvent(len(body))
    return body


def fields_of(event: Event, body: bytes) -> dict[str, str | int | bytes]:
    """Lay an event out as the fields of its stream entry."""
    return {"attempt": event.attempt, "sequence": event.sequence, "type": event.type, "event": body}


def decode_body(body: bytes) -> Event:
    """Read a stored body back; raises where `read_entry` would refuse."""
    match decode(b"", body):
        case Entry(event=event):
            return event
        case RejectedEntry(reason=reason, detail=detail):
            raise ValueError(f"{reason}: {detail}")


def read_entry(evaluation_id: str, raw: RawEntry) -> Entry | RejectedEntry:
    """Read one entry, checking that its fields agree with its envelope."""
    entry_id, fields = raw
    values = fields[1::2] if fields[::2] == _FIELDS else _in_order(fields)
    body = values[-1]
    if body is None:
        return RejectedEntry(entry_id, QuarantineReason.GARBAGE, "no field `event`", _as_json_list(fields))
    read = decode(entry_id, body, strict=True)
    if isinstance(read, RejectedEntry):
        return read
    event = read.event
    if out_of_range := _out_of_range(event, body):
        return RejectedEntry(entry_id, QuarantineReason.INVALID, out_of_range, body)
    if event.evaluation_id != evaluation_id:
        detail = f"written to the stream of {evaluation_id!r}, but names {event.evaluation_id!r}"
        return RejectedEntry(entry_id, QuarantineReason.MISMATCH, detail, body)
    if values[:3] != [b"%d" % event.attempt, b"%d" % event.sequence, event.type.encode()]:
        return RejectedEntry(entry_id, QuarantineReason.MISMATCH, _mismatch(values, event), body)
    return read


def readable_entries(evaluation_id: str, stream: Iterable[RawEntry]) -> Iterator[Entry]:
    """Read a stream, leaving out the entries that are rejected."""
    for raw in stream:
        if isinstance(entry := read_entry(evaluation_id, raw), Entry):
            yield entry


def _in_order(fields: Sequence[bytes]) -> list[bytes | None]:
    """Find the values where a foreign client wrote its fields in another order, or others besides."""
    named = dict(zip(fields[::2], fields[1::2], strict=False))
    return [named.get(name) for name in _FIELDS]


def decode(entry_id: bytes, body: bytes, *, strict: bool = False) -> Entry | RejectedEntry:
    """Read one envelope, lifting old versions; `strict` refuses a value of another JSON type."""
    if len(body) > MAX_EVENT_BYTES:
        detail = f"{len(body)} bytes, {MAX_EVENT_BYTES} are allowed"
        return RejectedEntry(entry_id, QuarantineReason.OVERSIZE, detail, body)
    if b"NaN" in body or b"Infinity" in body:
        # pydantic lets them pass where any JSON value may stand; JSON and Postgres have no such numbers.
        try:
            from_json(body, allow_inf_nan=False)
        except ValueError as garbage:
            return RejectedEntry(entry_id, QuarantineReason.GARBAGE, str(garbage), body)
    if _NUL_ESCAPE in body:
        body = _without_nuls(body)
    try:
        event = _validator()(body, strict=strict)
    except ValidationError as error:
        return _decode_slowly(entry_id, body, error)
    return Entry(entry_id, event if is_in_range(event.occurred_at) else _clamped(event), body)


def _clamped(event: Event) -> Event:
    return replace(event, occurred_at=clamped(event.occurred_at))


def _out_of_range(event: Event, body: bytes) -> str:
    """Name a value that the schema allows but PostgreSQL or a reader cannot represent."""
    if not is_in_range(event.occurred_at):
        return "occurred_at: the year should be between 2 and 9998"
    if isinstance(event, RetryingEvent):
        return _retry_time_out_of_range(event, body)
    if isinstance(event, QueuedEvent) and _LARGE_EXPONENT.search(body) and _is_infinite(from_json(body)):
        return "data.case: a number is too large for 64-bit floating point"
    return ""


def _retry_time_out_of_range(event: RetryingEvent, body: bytes) -> str:
    """Check the one time that is read out of the stored JSON by SQL."""
    written = from_json(body)["data"]["retry_at"]
    if not _WRITTEN_TIME.fullmatch(written):
        return "data.retry_at: should be written as RFC 3339, for example 2026-11-16T09:30:00Z"
    return (
        "" if is_in_range(event.data.retry_at) else "data.retry_at: the year should be between 2 and 9998"
    )


def _is_infinite(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    match value:
        case float():
            return math.isinf(value)
        case list():
            return any(_is_infinite(item) for item in value)
        case dict():
            return any(_is_infinite(item) for item in value.values())
        case _:
            return False


def _decode_slowly(entry_id: bytes, body: bytes, error: ValidationError) -> Entry | RejectedEntry:
    """Find out whether an event the current schema refuses is old, new, or wrong."""
    try:
        found = from_json(body)
    except ValueError as garbage:
        return RejectedEntry(entry_id, QuarantineReason.GARBAGE, str(garbage), body)
    if not isinstance(found, dict):
        return RejectedEntry(entry_id, QuarantineReason.GARBAGE, "not a JSON object", body)
    version = found.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        return RejectedEntry(entry_id, QuarantineReason.INVALID, f"schema_version is {version!r}", body)
    if version > SCHEMA_VERSION:
        detail = f"schema_version {version}; this reader knows up to {SCHEMA_VERSION}"
        return RejectedEntry(entry_id, QuarantineReason.FUTURE_VERSION, detail, body)
    event_type = found.get("type")
    if not isinstance(event_type, str) or event_type not in EVENT_CLASSES:
        return RejectedEntry(entry_id, QuarantineReason.UNKNOWN_TYPE, f"type is {event_type!r}", body)
    if version == SCHEMA_VERSION:
        return RejectedEntry(entry_id, QuarantineReason.INVALID, _first_error(error), body)
    return _decode_old(entry_id, body, found)


def _decode_old(entry_id: bytes, body: bytes, found: p.JsonObject) -> Entry | RejectedEntry:
    try:
        lifted = to_current(found, current=SCHEMA_VERSION)
        event = _validator()(to_json(lifted))
        return Entry(entry_id, event if is_in_range(event.occurred_at) else _clamped(event), body)
    except CannotUpcast as error:
        return RejectedEntry(entry_id, QuarantineReason.INVALID, str(error), body)
    except ValidationError as error:
        return RejectedEntry(entry_id, QuarantineReason.INVALID, _first_error(error), body)


def _first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _mismatch(values: Sequence[bytes | None], event: Event) -> str:
    outside = ", ".join((value or b"?").decode(errors="replace") for value in values[:3])
    return f"fields are ({outside}), envelope ({event.attempt}, {event.sequence}, {event.type})"


def _as_json_list(fields: Sequence[bytes]) -> bytes:
    return to_json([field.decode(errors="replace") for field in fields])


def _without_nuls(body: bytes) -> bytes:
    try:
        return to_json(_scrubbed(from_json(body)))
    except ValueError:
        return body  # not JSON at all: refused as garbage in the next step, with its bytes intact


def _scrubbed(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Replace what Postgres and UTF-8 can't hold in text: NULs and halves of surrogate pairs."""
    match value:
        case str():
            return value.replace("\0", _REPLACEMENT).encode("utf-8", "replace").decode()
        case tuple():
            return [_scrubbed(item) for item in value]
        case list():
            return [_scrubbed(item) for item in value]
        case dict():
            return {_scrubbed(key): _scrubbed(item) for key, item in value.items()}
        case _:
            return value
