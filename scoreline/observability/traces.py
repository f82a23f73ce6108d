"""Traces: sent to a collector, written to files, or both."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.sampling import DEFAULT_ON
from opentelemetry.trace import set_tracer_provider

from scoreline.observability.shutdown import SHUTDOWN_TIMEOUT, within
from scoreline.observability.span_files import SpanFile
from scoreline.observability.telemetry_settings import TelemetrySettings
from scoreline.private_files import private_folder


@contextmanager
def tracing(
    job: str, settings: TelemetrySettings, resource: Mapping[str, str], *, sends: bool
) -> Iterator[None]:
    """Record the spans of this process until the block is left."""
    provider = TracerProvider(
        sampler=DEFAULT_ON,  # who is traced is decided at acceptance, before anybody is asked
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
        within(SHUTDOWN_TIMEOUT, provider.shutdown)


def _span_file(folder: Path, job: str) -> SpanFile:
    if not folder.exists():
        private_folder(folder)
    return SpanFile(folder, job)
