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
from dataclasses import replace
from math import ulp
from random import Random
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint, Sum
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator

Series = dict[tuple[str, tuple[str, ...]], Any]
"""Points by the name of their metric and the values of their labels, in the order of the labels' names."""

_reader = InMemoryMetricReader()
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
    """What was measured since a moment."""

    def __init__(self) -> None:
        self.before = _read()
        self.after: Series = {}

    def look(self) -> "Measured":
        """Read all instruments as they are now."""
        self.after = _read()
        return self

    def __getitem__(self, which: str | tuple[str, ...]) -> float:
        name, labels = (which, ()) if isinstance(which, str) else (which[0], which[1:])
        before = self.before.get((name, labels))
        return float(self.after[name, labels].value - (before.value if before else 0))

    def resolution(self, name: str, *labels: str) -> float:
        """Return the rounding error of a counter's growth: its total is of the whole process."""
        return 4 * ulp(self.after[name, labels].value)

    def count(self, name: str, *labels: str) -> int:
        """How many values a histogram has got."""
        before = self.before.get((name, labels))
        return int(self.after[name, labels].count - (before.count if before else 0))

    def sum(self, name: str, *labels: str) -> float:
        """What these values come to."""
        before = self.before.get((name, labels))
        return float(self.after[name, labels].sum - (before.sum if before else 0))

    def gauge(self, name: str, *labels: str) -> float | None:
        """Return a gauge's value; None if it is not reported."""
        found = self.after.get((name, labels))
        return float(found.value) if found else None

    @property
    def names(self) -> set[str]:
        """All metrics of which there is a point."""
        return {name for name, _ in self.after}


@contextmanager
def measuring() -> Iterator[Measured]:
    """Measure what a block does."""
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


def _read() -> Series:
    data = _reader.get_metrics_data()
    resources = data.resource_metrics if data else []
    series: Series = {}
    for metric in (m for resource in resources for scope in resource.scope_metrics for m in scope.metrics):
        for point in metric.data.data_points:
            key = metric.name, _labels(point)
            before = series.get(key)
            # Rooms that are processes of their own count in one name; here they are in the same process.
            if before and isinstance(point, NumberDataPoint) and isinstance(metric.data, Sum):
                point = replace(point, value=point.value + before.value)  # noqa: PLW2901 - both in one
            series[key] = point
    return series


def _labels(point: Any) -> tuple[str, ...]:
    return tuple(str(value) for _, value in sorted((point.attributes or {}).items()))
