"""Metrics of the task queue; `docs/reference/telemetry.md` lists them."""

from collections import Counter
from collections.abc import Iterable

from opentelemetry.metrics import get_meter

from taskqueue.executor_registry import executor_name

_meter = get_meter("taskqueue")

RETRY = {"reason": "retry"}
DEAD_LETTER = {"reason": "dlq"}

enqueued = _meter.create_counter("eval_queue_enqueue_total", description="Tasks enqueued")
acked = _meter.create_counter("eval_queue_ack_total", description="Tasks acknowledged")
nacked = _meter.create_counter(
    "eval_queue_nack_total", description="Tasks returned to their queue, or dead-lettered"
)
claimed = _meter.create_counter(
    "eval_queue_claim_total", description="Stalled tasks claimed from another executor"
)


def begin() -> None:
    """Start every counter at 0: a series that appears with its first 1 has no increase."""
    for counter in (enqueued, acked, claimed):
        counter.add(0)
    for reason in (RETRY, DEAD_LETTER):
        nacked.add(0, reason)


def count_claims(consumers: Iterable[str]) -> None:
    """Count claimed tasks by the name of their former executor, which has a bounded set of values."""
    for worker, count in Counter(map(executor_name, consumers)).items():
        claimed.add(count, {"from_worker": worker})
