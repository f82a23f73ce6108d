"""Metrics of model calls; `docs/reference/telemetry.md` lists the names."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.metrics import get_meter

from executor.contract import CallFault

_errors = get_meter("executor.targets").create_counter(
    "eval_llm_errors_total", description="Calls to a model that failed"
)


@contextmanager
def counting_errors(provider: str) -> Iterator[None]:
    """Count what goes wrong with a call."""
    try:
        yield
    except CallFault as fault:
        _errors.add(1, {"provider": provider, "kind": fault.kind})
        raise
