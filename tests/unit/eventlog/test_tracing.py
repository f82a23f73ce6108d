"""Spans under a `traceparent`: when they are recorded, and what they contain."""

from datetime import UTC, datetime, timedelta

import pytest
from opentelemetry import trace

from eventlog import tracing
from tests.telemetry import tracing_spans

TRACEPARENT = f"00-{'a' * 32}-{'b' * 16}-01"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "traceparent",
    [
        None,
        "",
        "nonsense",
        TRACEPARENT.replace("-01", "-00"),
        f"00-{'0' * 32}-{'b' * 16}-01",
        TRACEPARENT.upper(),
        TRACEPARENT + "\n",
    ],
)
def test_an_unsampled_or_invalid_traceparent_leaves_no_span(traceparent):
    """Any producer can write to the log: an invalid `traceparent` is not traced and raises nothing."""
    with tracing_spans() as spans, tracing.span("a", traceparent) as span:
        tracing.finished("b", traceparent, start=NOON, end=NOON)
        with tracing.inner("c"):
            assert tracing.traceparent_of() is None
        assert not span.is_recording()
    assert spans == []


def test_spans_are_children_of_the_trace_that_begin_returns():
    """Spans of any process use the `traceparent` that `begin` returns as their parent."""
    with tracing_spans() as spans:
        traceparent = tracing.begin(
            "eval.coordinator.accept", evaluation_id="e", start=NOON, end=NOON + timedelta(seconds=1)
        )
        assert traceparent is not None
        with tracing.span("outer", traceparent, size=3, left_out=None), tracing.inner("inner"):
            assert tracing.traceparent_of() != traceparent
    begun, inner, outer = spans
    assert (begun.name, begun.parent) == ("eval.coordinator.accept", None)
    assert tracing.context_of(traceparent) is not None
    assert f"{begun.get_span_context().span_id:016x}" == traceparent.split("-")[2]  # type: ignore[union-attr]
    assert outer.parent
    assert f"{outer.parent.span_id:016x}" == traceparent.split("-")[2]
    assert inner.parent == outer.get_span_context()
    assert dict(outer.attributes or {}) == {"size": 3}


def test_a_finished_span_has_the_given_times():
    """Times are exact to the microsecond; an end before the start becomes the start."""
    with tracing_spans() as spans:
        tracing.finished("a", TRACEPARENT, start=NOON, end=NOON + timedelta(milliseconds=5))
        tracing.finished("b", TRACEPARENT, start=NOON, end=NOON - timedelta(seconds=1))
    start = int(NOON.timestamp()) * 10**9
    assert [(each.start_time, each.end_time) for each in spans] == [
        (start, start + 5_000_000),
        (start, start),
    ]


def test_exception_messages_are_in_no_span():
    """A span has only the exception's type, since its message may quote a key."""
    with tracing_spans() as spans, pytest.raises(ValueError, match="sk-secret"):  # noqa: SIM117
        with tracing.span("a", TRACEPARENT):
            raise ValueError("sk-secret")
    assert spans[0].status.description == "ValueError"
    assert "sk-secret" not in spans[0].to_json()


def test_a_span_without_a_parent_is_a_root():
    """The span ignores the span that is active around it."""
    with tracing_spans() as spans, tracing.span("around", TRACEPARENT), tracing.alone("own", count=1):
        assert trace.get_current_span().is_recording()
    assert [(each.name, each.parent is None) for each in spans] == [("own", True), ("around", False)]
