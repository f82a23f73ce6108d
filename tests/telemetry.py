"""What a test process has measured and traced. OpenTelemetry takes one provider a process: it is here.

with measuring() as measured:
    …
assert measured["eval_batch_tests_total"] == 1            # by how much a counter has grown
assert measured["eval_storage_events_total", "stale"] == 2   # of the series with this label value
assert measured.count("eval_storage_pass_ms") == 1        # values that a histogram has got
assert measured.gauge("eval_storage_backlog") == 0        # as it is at the end; None if it is not there

with tracing_spans() as spans:
    …
assert [span.name for span in spans] == ["eval.coordinator.accept"]
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any
from weakref import WeakSet

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider, ObservableCounter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    InMemoryMetricReader,
    NumberDataPoint,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator

Key = tuple[str, tuple[str, ...]]
"""The name of a metric, and the values of its labels in the order of their names."""


@dataclass(frozen=True)
class Growth:
    """What a counter or histogram has got; of a gauge, its value."""

    sum: float
    count: int

    def __add__(self, other: "Growth") -> "Growth":
        return Growth(self.sum + other.sum, self.count + other.count)


NOTHING = Growth(0.0, 0)

Series = dict[Key, Growth]

_GROWTH = AggregationTemporality.DELTA
_reader = InMemoryMetricReader(
    preferred_temporality={Counter: _GROWTH, ObservableCounter: _GROWTH, Histogram: _GROWTH},
)
_active: "WeakSet[Measured]" = WeakSet()
_known: set[Key] = set()
_exporter = InMemorySpanExporter()
metrics.set_meter_provider(MeterProvider([_reader], shutdown_on_exit=False))


class _Ids(IdGenerator):
    """Ids that leave the common dice alone: simulations have seeded them."""

    def __init__(self) -> None:
        self._dice = Random()

    def generate_span_id(self) -> int:
        """Name a span."""
        return self._dice.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        """Name a trace."""
        return self._dice.getrandbits(128) or 1


_tracers = TracerProvider(shutdown_on_exit=False, id_generator=_Ids())
_tracers.add_span_processor(SimpleSpanProcessor(_exporter))
trace.set_tracer_provider(_tracers)


class Measured:
    """What was measured since a moment: the growth of counters and histograms, and gauges as they are.

    The growth is read as such: as the difference of two totals it would carry their rounding.
    """

    def __init__(self) -> None:
        self.after: Series = {}
        self._unread: list[Series] = []
        _active.add(self)

    def look(self) -> "Measured":
        """Read all instruments as they are now."""
        gauges = _collect()
        growth = {key: value for key, value in self.after.items() if key in _known}
        for each in self._unread:
            for key, value in each.items():
                growth[key] = growth.get(key, NOTHING) + value
        self._unread.clear()
        self.after = growth | gauges
        return self

    def add(self, growth: Series) -> None:
        """Keep what has grown since the last reading until this one looks."""
        self._unread.append(growth)

    def __getitem__(self, which: str | tuple[str, ...]) -> float:
        name, labels = (which, ()) if isinstance(which, str) else (which[0], which[1:])
        return self._grown(name, labels).sum

    def count(self, name: str, *labels: str) -> int:
        """How many values a histogram has got."""
        return self._grown(name, labels).count

    def sum(self, name: str, *labels: str) -> float:
        """What these values come to."""
        return self._grown(name, labels).sum

    def gauge(self, name: str, *labels: str) -> float | None:
        """Return a gauge's value; None if it is not reported."""
        found = self.after.get((name, labels))
        return found.sum if found else None

    @property
    def names(self) -> set[str]:
        """All metrics that are reported."""
        return {name for name, _ in _known | self.after.keys()}

    def _grown(self, name: str, labels: tuple[str, ...]) -> Growth:
        if (name, labels) not in _known:
            raise KeyError(name, labels)
        return self.after.get((name, labels), NOTHING)


@contextmanager
def measuring() -> Iterator[Measured]:
    """Measure what a block does."""
    _collect()
    measured = Measured()
    yield measured
    measured.look()


@contextmanager
def tracing_spans() -> Iterator[list[ReadableSpan]]:
    """Gather the spans that end while a block lasts."""
    _exporter.clear()
    found: list[ReadableSpan] = []
    yield found
    found += _exporter.get_finished_spans()


def _collect() -> Series:
    """Give what has grown since the last reading to all who measure, and return the gauges."""
    data = _reader.get_metrics_data()
    resources = data.resource_metrics if data else []
    growth: Series = {}
    gauges: Series = {}
    for metric in (m for resource in resources for scope in resource.scope_metrics for m in scope.metrics):
        grows = getattr(metric.data, "aggregation_temporality", None) is _GROWTH
        for point in metric.data.data_points:
            key = metric.name, _labels(point)
            if not grows:
                gauges[key] = _value(point)
                continue
            # Processes of different kinds count in one name; here they are in the same process.
            growth[key] = growth.get(key, NOTHING) + _value(point)
    _known.update(growth)
    for measured in _active:
        measured.add(growth)
    return gauges


def _value(point: Any) -> Growth:
    if isinstance(point, NumberDataPoint):
        return Growth(float(point.value), 1)
    return Growth(point.sum, point.count)


def _labels(point: Any) -> tuple[str, ...]:
    return tuple(str(value) for _, value in sorted((point.attributes or {}).items()))
