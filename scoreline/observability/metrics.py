"""Metrics: exported to a collector, or served for scraping."""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from wsgiref.simple_server import WSGIServer

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, start_http_server

from scoreline.command_error import CommandError
from scoreline.observability.addresses import registered
from scoreline.observability.shutdown import SHUTDOWN_TIMEOUT, within
from scoreline.observability.telemetry_settings import TelemetrySettings

logger = logging.getLogger(__name__)

EXEMPLARS = "OTEL_METRICS_EXEMPLAR_FILTER"
"""Exemplars are opt-in: otherwise each value would look up its span."""


@contextmanager
def sending(resource: Mapping[str, str]) -> Iterator[None]:
    """Send metrics to the collector that `OTEL_` variables name."""
    with _provided(PeriodicExportingMetricReader(OTLPMetricExporter()), resource):
        yield


@contextmanager
def serving(
    job: str, name: str, settings: TelemetrySettings, resource: Mapping[str, str]
) -> Iterator[None]:
    """Serve `/metrics`, and register the address, if there is a folder for that."""
    registry = CollectorRegistry()
    # No scope labels, no target_info: series of several executors are put together by their own labels.
    reader = PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False, registry=registry)
    with _provided(reader, resource), _listening(settings, registry) as port:
        logger.info("metrics are served", extra={"host": settings.metrics_host, "port": port})
        if settings.metrics_dir is None:
            yield
        else:
            host, folder = settings.metrics_host, settings.metrics_dir
            with registered(folder, job, name=name, host=host, port=port):
                yield


@contextmanager
def _listening(settings: TelemetrySettings, registry: CollectorRegistry) -> Iterator[int]:
    server = _listen(settings.metrics_port or 0, settings.metrics_host, registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _listen(port: int, host: str, registry: CollectorRegistry) -> WSGIServer:
    try:
        server, _ = start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise CommandError(
            f"EVAL_METRICS_PORT={port}: can't listen on {host}: {error.strerror or error}. "
            "Give each process a port of its own, or 0 for any that is free, with EVAL_METRICS_DIR."
        ) from None
    return server


@contextmanager
def _provided(reader: MetricReader, resource: Mapping[str, str]) -> Iterator[None]:
    provider = MeterProvider(
        [reader],
        resource=Resource.create(dict(resource)),
        exemplar_filter=None if EXEMPLARS in os.environ else AlwaysOffExemplarFilter(),
        shutdown_on_exit=False,
    )
    set_meter_provider(provider)
    try:
        yield
    finally:
        within(SHUTDOWN_TIMEOUT, provider.shutdown)
