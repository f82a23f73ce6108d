"""The telemetry that a process is configured for, active while the process runs.

The SDK is imported only where telemetry is configured.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec

from providers.extras import install_command
from scoreline.command_error import CommandError
from scoreline.observability.telemetry_settings import TelemetrySettings

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client")
MISSING = "telemetry is configured, and its packages are not installed"


class Service(StrEnum):
    """The service that a process belongs to: `job` in metrics, `service.name` in traces."""

    EXECUTOR = "executor"
    COORDINATOR = "coordinator"
    STORAGE_WORKER = "storage-worker"
    SUBMITTER = "submitter"


@dataclass(frozen=True, slots=True)
class TelemetryPlan:
    """The configured telemetry of a process."""

    sends: bool
    """Metrics and traces are exported to a collector."""
    serves: bool
    """Metrics are served for scraping."""
    writes_spans: bool

    @property
    def anything(self) -> bool:
        """Whether any telemetry is configured."""
        return self.sends or self.serves or self.writes_spans


def telemetry_plan(job: Service, settings: TelemetrySettings, environ: Mapping[str, str]) -> TelemetryPlan:
    """Return the telemetry of a process; a submitter has no metrics and takes no port."""
    sends = bool(environ.get(ENDPOINT))
    serves = settings.metrics_port is not None and not sends and job is not Service.SUBMITTER
    return TelemetryPlan(sends, serves, settings.trace_dir is not None)


@contextmanager
def telemetry_for(
    job: Service,
    settings: TelemetrySettings,
    environ: Mapping[str, str] | None = None,
    *,
    name: str = "",
) -> Iterator[None]:
    """Run the configured telemetry while the block lasts, and flush it at the end.

    The name is what the process keeps when it is restarted.
    """
    plan = telemetry_plan(job, settings, os.environ if environ is None else environ)
    if not plan.anything:
        yield
        return
    check_installed()
    from scoreline.observability import metrics, traces

    resource = {
        "service.name": f"scoreline-{job}",
        "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
    }
    with ExitStack() as stack:
        if plan.sends or plan.writes_spans:
            stack.enter_context(traces.tracing(job, settings, resource, sends=plan.sends))
        if plan.sends and job is not Service.SUBMITTER:
            stack.enter_context(metrics.sending(resource))
        elif plan.serves:
            stack.enter_context(metrics.serving(job, name, settings, resource))
        yield


def check_installed(find: Callable[[str], object] = find_spec) -> None:
    """See that the packages are there; raises `CommandError` with how to install them."""
    for name in NEEDED:
        try:
            found = find(name)
        except ModuleNotFoundError:
            found = None
        if not found:
            raise CommandError(f"{MISSING}: {install_command('otel')}")
