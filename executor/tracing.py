"""The spans of one attempt that is traced."""

from contextlib import AbstractContextManager
from datetime import datetime

from opentelemetry.trace import Span

from eventlog import tracing
from executor.replay import ReplayedAttempt
from taskqueue.executor_registry import executor_name
from taskqueue.tasks import Delivery


def process_task(
    delivery: Delivery, known: ReplayedAttempt, *, worker: str, now: datetime
) -> AbstractContextManager[Span]:
    """Put a span around the work on an attempt, and before it what led to its claim."""
    task = delivery.task
    if delivery.deliveries > 1:
        tracing.finished(
            "eval.queue.claim_stalled",
            known.traceparent,
            start=now,
            end=now,
            task_id=task.name,
            from_worker=executor_name(delivery.claimed_from),
            to_worker=worker,
        )
    tracing.finished(
        "eval.queue.consume",
        known.traceparent,
        start=min(known.opened_at or now, now),
        end=now,
        worker_id=worker,
        batch_id=delivery.batch_id,
        task_id=task.name,
    )
    return tracing.span(
        "eval.worker.process_task",
        known.traceparent,
        evaluation_id=task.evaluation_id,
        worker_id=worker,
        task_id=task.name,
        test_case_id=known.opening.case.id,
    )
