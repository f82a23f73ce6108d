"""Traces: sent to a collector, written to files, or both."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import Link, SpanKind, TraceState, set_tracer_provider
from opentelemetry.util.types import Attributes

from eventlog.tracing import BEGINNING
from scoreline.settings import Settings
from scoreline.telemetry.farewell import PATIENCE, within
from scoreline.telemetry.span_files import SpanFile

__all__ = ["Beginnings", "Decision", "tracing"]


@contextmanager
def tracing(job: str, settings: Settings, resource: Mapping[str, str], *, sends: bool) -> Iterator[None]:
    """Record the spans of this process until the block is left."""
    provider = TracerProvider(
        sampler=ParentBased(Beginnings(settings.trace_ratio)),
        resource=Resource.create(dict(resource)),
        shutdown_on_exit=False,
    )
    if settings.trace_dir is not None:
        # At once, not in batches: what a process did before it was killed is worth most.
        provider.add_span_processor(SimpleSpanProcessor(_span_file(settings.trace_dir, job)))
    if sends:
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    set_tracer_provider(provider)
    try:
        yield
    finally:
        within(PATIENCE, provider.shutdown)


def _span_file(folder: Path, job: str) -> SpanFile:
    folder.mkdir(parents=True, exist_ok=True)
    return SpanFile(folder, job)


class Beginnings(Sampler):
    """Traces a share of evaluations; spans that are of no evaluation are few, and all kept."""

    def __init__(self, ratio: float) -> None:
        self._evaluations = TraceIdRatioBased(ratio)

    def should_sample(  # noqa: PLR0913, PLR0917 - the SDK's
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Decide on a span that has none above it."""
        sampler = self._evaluations if name == BEGINNING else ALWAYS_ON
        return sampler.should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)

    def get_description(self) -> str:
        """Say how it decides."""
        return f"{self._evaluations.get_description()} of evaluations"
