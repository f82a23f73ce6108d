"""Shorthands with which the conformance tests append to a log and read it."""

from collections.abc import Iterable

from eventlog.codec import RawEntry, decode_body
from eventlog.events import Event
from eventlog.log import Append, AppendResponse, AppendResult, Mode
from tests.builders import EVALUATION, event, records
from tests.conformance.eventlog.log_forms import Form, fields_of

OK, DUPLICATE, CONFLICT = AppendResult.OK, AppendResult.DUPLICATE, AppendResult.CONFLICT
FENCED, CLOSED, EPOCH = AppendResult.FENCED, AppendResult.CLOSED, AppendResult.EPOCH


def events_of(raw: Iterable[RawEntry]) -> list[Event]:
    """Decode entries that are known to be valid."""
    return [decode_body(fields_of(entry)[b"event"]) for entry in raw]


async def append_call(
    form: Form, *events: Event, mode: Mode = Mode.NORMAL, epoch: str | None = None
) -> AppendResponse:
    """Append events in one call, by default with the current epoch."""
    seen = await form.log.epoch(EVALUATION) if epoch is None else epoch
    (reply,) = await form.log.append([Append(EVALUATION, records(events), seen, mode)])
    return reply


async def append(form: Form, *events: Event, mode: Mode = Mode.NORMAL) -> list[AppendResult]:
    return list((await append_call(form, *events, mode=mode)).results)


async def stream(form: Form) -> list[Event]:
    """Return the evaluation's events in order of arrival."""
    (raw,) = await form.log.read([EVALUATION], limit=1_000)
    return events_of(raw)


def rival(word: str, *, attempt: int = 1, sequence: int) -> Event:
    """Make an event with the same key and another body."""
    return event(word, attempt=attempt, sequence=sequence, source="rival")
