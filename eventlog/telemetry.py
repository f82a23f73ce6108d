"""Metrics of a writer's event queue; `docs/reference/telemetry.md` lists the names."""

from collections.abc import Sequence

from opentelemetry.metrics import get_meter

from eventlog.gauges import GaugeSet
from eventlog.log import AppendResult
from eventlog.outbox import Outbox

QUICK_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
"""Bounds of a histogram for what mostly takes milliseconds."""

_meter = get_meter("eventlog")
GAUGES: GaugeSet[Outbox] = GaugeSet("eventlog")
GAUGES.value(
    "eval_event_queue_depth",
    "Events recorded and not yet acknowledged by Redis",
    lambda outbox: outbox.depth,
    combine=sum,
)
GAUGES.value(
    "eval_event_queue_bytes",
    "Bytes held by unsent events and tails",
    lambda outbox: outbox.bytes,
    combine=sum,
)
_delay = _meter.create_histogram(
    "eval_event_queue_delay_ms",
    description="From recording an event to its acknowledgement, the oldest of each round trip",
    explicit_bucket_boundaries_advisory=QUICK_MS,
)
_refused = _meter.create_counter("eval_event_refused_total", description="Events that append.lua refused")


def register(outbox: Outbox) -> None:
    """Export an event queue's gauges, and every counter from the start."""
    GAUGES.register(outbox)
    for result in AppendResult:
        if not result.acknowledged:
            _refused.add(0, {"answer": result.lower()})


def waited(seconds: float) -> None:
    """Record the delay of the oldest event of a round trip: too many to record each."""
    _delay.record(seconds * 1000)


def count_refused(results: Sequence[AppendResult]) -> None:
    """Count the refused events of one attempt."""
    for result in results:
        if result is not AppendResult.OK and not result.acknowledged:
            refused(result)


def refused(result: AppendResult) -> None:
    """Count an event that the log refused."""
    _refused.add(1, {"answer": result.lower()})
