"""What the task queue tells of itself; `docs/telemetry.md` has the names."""

from opentelemetry.metrics import get_meter

_meter = get_meter("taskqueue")

RETRY = {"reason": "retry"}
DEAD_LETTER = {"reason": "dlq"}

enqueued = _meter.create_counter("eval_queue_enqueue_total", description="Tasks added")
acked = _meter.create_counter("eval_queue_ack_total", description="Tasks done")
nacked = _meter.create_counter("eval_queue_nack_total", description="Tasks given back, or given up")
claimed = _meter.create_counter(
    "eval_queue_claim_total", description="Tasks taken over from whoever left them lying"
)


def begin() -> None:
    """Have every counter begin at nothing: the first one counted would else not be seen to come."""
    for counter in (enqueued, acked, claimed):
        counter.add(0)
    for reason in (RETRY, DEAD_LETTER):
        nacked.add(0, reason)
