"""What a writer's event queue tells of itself; `docs/reference/telemetry.md` has the names."""

from collections.abc import Iterable, Sequence

from opentelemetry.metrics import CallbackOptions, Observation, get_meter

from eventlog.log import AppendResult
from eventlog.outbox import Outbox

QUICK_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
"""Bounds of a histogram for what mostly takes milliseconds."""

_meter = get_meter("eventlog")
_watched: set[Outbox] = set()


def _depth(_options: CallbackOptions) -> Iterable[Observation]:
    if _watched:
        yield Observation(sum(outbox.depth for outbox in list(_watched)))


def _bytes(_options: CallbackOptions) -> Iterable[Observation]:
    if _watched:
        yield Observation(sum(outbox.bytes for outbox in list(_watched)))


_meter.create_observable_gauge(
    "eval_event_queue_depth", [_depth], description="Events recorded and not yet acknowledged by Redis"
)
_meter.create_observable_gauge(
    "eval_event_queue_bytes", [_bytes], description="What unsent events and the kept tail hold"
)
_delay = _meter.create_histogram(
    "eval_event_queue_delay_ms",
    description="From recording an event to Redis' answer, the oldest of each round trip",
    explicit_bucket_boundaries_advisory=QUICK_MS,
)
_refused = _meter.create_counter("eval_event_refused_total", description="What append.lua did not take")


def watch(outbox: Outbox) -> None:
    """Tell of an event queue from now on."""
    _watched.add(outbox)
    for answer in AppendResult:
        if not answer.acknowledged:
            _refused.add(0, {"answer": answer.lower()})


def unwatch(outbox: Outbox) -> None:
    """Tell of it no more."""
    _watched.discard(outbox)


def waited(seconds: float) -> None:
    """Tell how long the oldest event of a round trip had to wait: they are too many to tell of each."""
    _delay.record(seconds * 1000)


def count_refused(answers: Sequence[AppendResult]) -> None:
    """Count what the log did not take of one attempt's events."""
    for answer in answers:
        if answer is not AppendResult.OK and not answer.acknowledged:
            refused(answer)


def refused(answer: AppendResult) -> None:
    """Count an event that the log did not take."""
    _refused.add(1, {"answer": answer.lower()})
