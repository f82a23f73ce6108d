"""Metrics of a writer's event queue: refused events by the answer of the log, and no others."""

from eventlog import telemetry
from eventlog.log import AppendResult
from eventlog.outbox import Outbox
from tests.telemetry import measuring

REFUSED = "eval_event_refused_total"


def test_every_refusal_is_exported_from_the_start():
    """A series that appears with its first 1 has no increase; acknowledged events have no series."""
    with measuring() as measured:
        telemetry.register(Outbox(max_bytes=1_000))
    exported = {labels for name, labels in measured.after if name == REFUSED}
    assert exported == {("conflict",), ("fenced",), ("closed",), ("epoch",)}
    assert sum(measured[REFUSED, *labels] for labels in exported) == 0


def test_only_refused_events_are_counted():
    """An event that was appended before is acknowledged, not refused."""
    outbox = Outbox(max_bytes=1_000)
    results = [AppendResult.OK, AppendResult.DUPLICATE, AppendResult.FENCED, AppendResult.FENCED]
    with measuring() as measured:
        telemetry.register(outbox)
        telemetry.count_refused(results)
    assert measured[REFUSED, "fenced"] == 2
    assert measured[REFUSED, "closed"] == 0


def test_a_delay_is_recorded_in_milliseconds():
    """The histogram's bounds are milliseconds, and a queue's clock has seconds."""
    with measuring() as measured:
        telemetry.waited(0.25)
    assert measured.sum("eval_event_queue_delay_ms") == 250
