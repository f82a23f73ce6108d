"""Which telemetry a process was asked for, and having it for as long as the process works.

Nothing that belongs to the SDK is imported before it is known that somebody asked.
"""

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec

from providers.extras import install_command
from scoreline.observability.telemetry_settings import TelemetrySettings
from scoreline.problem import Problem

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client")
MISSING = "telemetry was asked for, and its packages are not installed"


class Service(StrEnum):
    """What a process is, to whoever watches it."""

    EXECUTOR = "executor"
    COORDINATOR = "coordinator"
    STORAGE_WORKER = "storage-worker"
    SUBMITTER = "submitter"


@dataclass(frozen=True, slots=True)
class Asked:
    """What telemetry was asked for."""

    sends: bool
    """Metrics and traces go to a collector."""
    serves: bool
    """Metrics are to be fetched here."""
    writes_spans: bool

    @property
    def anything(self) -> bool:
        """Whether there is anything to do."""
        return self.sends or self.serves or self.writes_spans


def asked_for(job: Service, settings: TelemetrySettings, environ: Mapping[str, str]) -> Asked:
    """Say what is wanted of a process; whoever submits has no metrics, and must not take a port."""
    sends = bool(environ.get(ENDPOINT))
    serves = settings.metrics_port is not None and not sends and job is not Service.SUBMITTER
    return Asked(sends, serves, settings.trace_dir is not None)


@contextmanager
def telemetry_for(
    job: Service, settings: TelemetrySettings, environ: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Have the telemetry that was asked for until the block is left; what is left to say is said then."""
    asked = asked_for(job, settings, os.environ if environ is None else environ)
    if not asked.anything:
        yield
        return
    check_installed()
    from scoreline.observability import metrics, traces

    resource = {
        "service.name": f"scoreline-{job}",
        "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
    }
    with ExitStack() as stack:
        if asked.sends or asked.writes_spans:
            stack.enter_context(traces.tracing(job, settings, resource, sends=asked.sends))
        if asked.sends and job is not Service.SUBMITTER:
            stack.enter_context(metrics.sending(resource))
        elif asked.serves:
            stack.enter_context(metrics.serving(job, settings, resource))
        yield


def check_installed(find: Callable[[str], object] = find_spec) -> None:
    """See that the packages are there; raises `Problem` with how to install them."""
    for name in NEEDED:
        try:
            found = find(name)
        except ModuleNotFoundError:
            found = None
        if not found:
            raise Problem(f"{MISSING}: {install_command('otel')}")
