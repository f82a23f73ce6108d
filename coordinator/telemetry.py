"""Metrics of a coordinator; `docs/reference/telemetry.md` lists them.

This module uses only OpenTelemetry's API: without a configured SDK every instrument is a no-op.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache

from opentelemetry import metrics, trace
from pydantic import ValidationError

from coordinator.publisher import is_to_be_run
from domain.batch_spec import BatchSpec, unpack
from eventlog import payloads as p
from projections.ledger.batch import Batch
from projections.ledger.contract import OpenedAttempt

ROUND_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000)
BATCH_SECONDS = (1, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400, 172_800)
REASONS = tuple(p.OpeningReason)

_meter = metrics.get_meter("scoreline.coordinator")
_counter = _meter.create_counter

STARTED = _counter("eval_distributed_batch_started_total", description="Batches registered")
COMPLETED = _counter("eval_distributed_batch_completed_total", description="Batches finished")
BATCH_TIME = _meter.create_histogram(
    "eval_batch_duration_seconds",
    description="From acceptance to the end",
    explicit_bucket_boundaries_advisory=BATCH_SECONDS,
)
CYCLE = _meter.create_histogram(
    "eval_coordinator_round_ms",
    description="Duration of one cycle over all batches",
    explicit_bucket_boundaries_advisory=ROUND_MS,
)
OPENED = _counter("eval_coordinator_opened_total", description="Attempts opened after the first")
TESTS = _counter("eval_batch_tests_total", description="Evaluations that ended")
TESTS_FAILED = _counter("eval_batch_tests_failed_total", description="Evaluations without a good verdict")
TOKENS = _counter("eval_tokens_total", description="Tokens used")
COST = _counter("eval_cost_usd_total", description="US dollars paid")


def is_wired() -> bool:
    """Whether an SDK collects these metrics."""
    return not type(metrics.get_meter_provider()).__module__.startswith("opentelemetry.metrics")


def is_tracing() -> bool:
    """Whether an SDK records spans."""
    return not type(trace.get_tracer_provider()).__module__.startswith("opentelemetry.trace")


def begin() -> None:
    """Start counters at 0: a series that appears with its first 1 has no increase."""
    for reason in REASONS:
        OPENED.add(0, {"reason": reason.value})
    for counter in (TESTS, TESTS_FAILED, TOKENS, COST):
        counter.add(0)


def mode_of(spec: BatchSpec) -> str:
    """Return the type of a batch's targets."""
    first, *others = {target.type for target in spec.targets}
    return "mixed" if others else first


@lru_cache(maxsize=64)
def _labels_of(spec: bytes) -> tuple[str, str]:
    try:
        read = unpack(spec)
    except ValidationError:  # `run_cycle` logs an invalid spec
        return "other", "false"
    return mode_of(read), "true" if read.batch_api else "false"


def count_started(batch: Batch) -> None:
    """Count a batch that is registered for the first time."""
    mode, batch_api = _labels_of(batch.spec)
    STARTED.add(1, {"eval_mode": mode, "batch_api": batch_api})


def count_over(batch: Batch, now: datetime) -> None:
    """Count a finished batch."""
    mode, _ = _labels_of(batch.spec)
    status = status_of(batch.state, completed=batch.progress.completed, total=batch.progress.total)
    COMPLETED.add(1, {"eval_mode": mode, "status": status})
    if batch.accepted_at:
        BATCH_TIME.record(max(0.0, (now - batch.accepted_at).total_seconds()), {"eval_mode": mode})


def status_of(state: str, *, completed: int, total: int) -> str:
    """Return the outcome of a finished batch."""
    if state in {"cancelled", "expired"}:
        return state
    if completed >= total:
        return "success"
    return "partial" if completed else "failed"


def count_opened(opened: Sequence[OpenedAttempt]) -> None:
    """Count opened attempts, and the endings and costs in them, which no storage worker counts."""
    for reason, many in Counter(_reasons(opened)).items():
        OPENED.add(many, {"reason": reason})
    ended = sum(1 for one in opened if not is_to_be_run(one.events))
    TESTS.add(ended)
    TESTS_FAILED.add(ended)
    TOKENS.add(sum(one.progress.tokens for one in opened))
    COST.add(float(sum(one.progress.cost_usd for one in opened)))


def _reasons(opened: Iterable[OpenedAttempt]) -> Iterable[str]:
    for one in opened:
        event = one.events[0][0]
        if event.attempt > 1 and isinstance(event.data, p.Queued):
            yield event.data.reason.value
