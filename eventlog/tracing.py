"""Spans of an evaluation's trace, which crosses processes in the `traceparent` of its events.

Whether an evaluation is traced is decided once, by `begin`: its events then have a `traceparent`, or none.
Without one nothing below costs more than a comparison. Only the API of OpenTelemetry is used here and in
all packages; where a process has wired no SDK, every span is a no-op.

    traceparent = tracing.begin("eval.coordinator.accept", evaluation_id=…)   # None: not traced
    tracing.finished("eval.queue.consume", traceparent, start=opened_at, end=claimed_at, worker_id=…)
    with tracing.span("eval.worker.process_task", traceparent, worker_id=…) as task:
        with tracing.inner("eval.worker.ask", target=…) as asking:            # under the one around it
            …
            asking.set_attribute("tokens", 12)
    with tracing.alone("eval.batch_api.poll", provider_batch_id=…):           # of no evaluation

Attributes that are None are left out. The text of an exception may hold a secret: a span that
ends with one has only its type.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, Status, StatusCode, TraceFlags

from eventlog.redaction import redact

Attribute = str | bool | int | float | None

_SHAPE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_NOT_TRACED = nullcontext(trace.INVALID_SPAN)
_NOWHERE = Context()

_tracer = trace.get_tracer("scoreline")


def context_of(traceparent: str | None) -> Context | None:
    """Make a context to put spans under; None for what is not traced, or is no `traceparent`."""
    if traceparent is None:
        return None
    found = _SHAPE.fullmatch(traceparent)
    if not found or not int(found[3], 16) & TraceFlags.SAMPLED:
        return None
    above = SpanContext(
        int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )
    return trace.set_span_in_context(NonRecordingSpan(above), _NOWHERE) if above.is_valid else None


def traceparent_of(span: Span | None = None) -> str | None:
    """Write a span, or the current one, as a `traceparent`; None if it is not sampled."""
    context = (span or trace.get_current_span()).get_span_context()
    if not (context.is_valid and context.trace_flags.sampled):
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-01"


def begin(
    name: str,
    /,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    **attributes: Attribute,
) -> str | None:
    """Begin an evaluation's trace with a span that is over; returns what its events are to carry."""
    span = _tracer.start_span(name, _NOWHERE, start_time=_nanoseconds(start))
    traceparent = traceparent_of(span)
    if traceparent is not None:
        span.set_attributes(_present(attributes))
        span.end(_nanoseconds(end))
    return traceparent


def finished(
    name: str, traceparent: str | None, /, *, start: datetime, end: datetime, **attributes: Attribute
) -> None:
    """Record a span that is over."""
    if traceparent is None or (above := context_of(traceparent)) is None:
        return
    span = _tracer.start_span(name, above, start_time=_nanoseconds(start), attributes=_present(attributes))
    span.end(_nanoseconds(max(start, end)))


def span(
    name: str, traceparent: str | None, /, *, start: datetime | None = None, **attributes: Attribute
) -> AbstractContextManager[Span]:
    """Put a span around something; it is the current one meanwhile."""
    if traceparent is None or (above := context_of(traceparent)) is None:
        return _NOT_TRACED
    return _around(name, above, start, attributes)


def inner(
    name: str, /, *, start: datetime | None = None, **attributes: Attribute
) -> AbstractContextManager[Span]:
    """Put a span around something, under the current one; nothing where that is not recorded."""
    if not trace.get_current_span().is_recording():
        return _NOT_TRACED
    return _around(name, None, start, attributes)


def alone(name: str, /, **attributes: Attribute) -> AbstractContextManager[Span]:
    """Put a span around something that is of no one evaluation."""
    return _around(name, _NOWHERE, None, attributes)


@contextmanager
def _around(
    name: str, above: Context | None, start: datetime | None, attributes: Mapping[str, Attribute]
) -> Iterator[Span]:
    span = _tracer.start_span(name, above, start_time=_nanoseconds(start), attributes=_present(attributes))
    try:
        with trace.use_span(span, record_exception=False, set_status_on_exception=False):
            yield span
    except BaseException as error:
        span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        raise
    finally:
        span.end()


def _present(attributes: Mapping[str, Attribute]) -> dict[str, str | bool | int | float]:
    present = ((name, value) for name, value in attributes.items() if value is not None)
    return {name: redact(value) if isinstance(value, str) else value for name, value in present}


def _nanoseconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1_000_000) * 1_000
