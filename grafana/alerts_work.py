"""Alerts about batches and the queue: does the work go on, and does it come to anything."""

from collections.abc import Iterator
from datetime import timedelta

from grafana.alert import Alert, Severity, grown, lines, seconds, time
from scoreline.observability.thresholds import Thresholds

MINUTE = timedelta(minutes=1)


def work(limits: Thresholds) -> Iterator[Alert]:
    """List them."""
    yield _queue_backlog(limits)
    yield _dlq_growing(limits)
    yield _stalled_tasks(limits)
    yield _batch_stuck(limits)
    yield _stuck_evaluations()
    yield _high_failure_rate(limits)
    yield _budget_nearly_spent(limits)
    yield _batch_completed(limits)


def _queue_backlog(limits: Thresholds) -> Alert:
    # A queue that does not drain at all is no backlog: BatchStuck tells of it.
    expression = f"""
        (sum(eval_queue_pending_tasks) + sum(eval_queue_delayed_tasks))
        / (sum(rate(eval_queue_ack_total[{time(limits.pace_window)}])) > 0)
        > {seconds(limits.backlog_drain)}
    """
    return Alert(
        name="QueueBacklog",
        severity=Severity.WARNING,
        expression=lines(expression),
        lasting=10 * MINUTE,
        summary="The queue takes long to drain",
        description="At the present pace, what is in the queue takes {{ $value | humanizeDuration }}.",
        action="docker compose up --detach --scale executor=8",
    )


def _dlq_growing(limits: Thresholds) -> Alert:
    # A batch that is younger than the window had no dead letters when it began.
    window = time(limits.dead_letters_window)
    age = seconds(limits.dead_letters_window)
    expression = f"""
        max by (batch_id) (eval_queue_dlq_size)
        - on (batch_id) (
          (
            max by (batch_id) (min_over_time(eval_queue_dlq_size[{window}]))
            unless on (batch_id) time() - max by (batch_id) (eval_batch_started_timestamp_seconds) < {age}
          )
          or 0 * max by (batch_id) (eval_queue_dlq_size)
        ) > {limits.dead_letters}
    """
    return Alert(
        name="DLQGrowing",
        severity=Severity.WARNING,
        expression=lines(expression),
        lasting=timedelta(),
        summary="Evaluations are given up",
        description=(
            f"Batch {{{{ $labels.batch_id }}}} has {{{{ $value }}}} more dead letters than {window} ago."
        ),
        action="scoreline batch dlq {{ $labels.batch_id }}",
    )


def _stalled_tasks(limits: Thresholds) -> Alert:
    window = limits.taken_over_window
    claimed = grown("eval_queue_claim_total", window)
    return Alert(
        name="StalledTasks",
        severity=Severity.WARNING,
        expression=f"{claimed} / {seconds(window)} > {limits.stalled_claims_per_second}",
        lasting=5 * MINUTE,
        summary="Tasks are left lying again and again",
        description="{{ $value | humanize }} tasks a second are taken over from executors that left them.",
        action="docker compose logs --since 15m executor",
    )


def _batch_stuck(limits: Thresholds) -> Alert:
    # Work in hand that is within its time-outs is no standstill, nor is what lies at a provider.
    expression = f"""
        (max by (batch_id) (eval_batch_idle_seconds) > {seconds(limits.no_progress)})
        unless on (batch_id) (
          (max by (batch_id) (eval_queue_owned_tasks) > 0)
          unless on () (max(eval_worker_oldest_task_overdue_seconds) > 0)
        )
        unless on (batch_id) (
          (
            max by (batch_id) (eval_queue_pending_tasks)
            + on (batch_id) max by (batch_id) (eval_queue_delayed_tasks)
            + on (batch_id) max by (batch_id) (eval_queue_owned_tasks)
          ) == 0
          and on () sum(eval_batch_api_open) > 0
        )
    """
    return Alert(
        name="BatchStuck",
        severity=Severity.WARNING,
        expression=lines(expression),
        lasting=MINUTE,
        summary="A batch makes no progress",
        description=(
            "Nothing of batch {{ $labels.batch_id }} has ended for {{ $value | humanizeDuration }}."
        ),
        action="scoreline batch status {{ $labels.batch_id }}",
    )


def _stuck_evaluations() -> Alert:
    return Alert(
        name="StuckEvaluations",
        severity=Severity.WARNING,
        expression="max(eval_stuck_evaluations) > 0",
        lasting=5 * MINUTE,
        summary="Evaluations are stuck",
        description="{{ $value }} evaluations have not moved for 15 minutes beyond their time-out.",
        action="scoreline batch list --status running",
    )


def _high_failure_rate(limits: Thresholds) -> Alert:
    window = time(limits.failure_window)
    ended = 'eval_worker_tasks_processed_total{status=~"success|failure|timeout"}'
    given_up = 'eval_worker_tasks_processed_total{status=~"failure|timeout"}'
    expression = f"""
        sum(rate({given_up}[{window}])) / sum(rate({ended}[{window}])) > {limits.failure_rate}
        and sum(increase({ended}[{window}])) >= {limits.failure_sample}
    """
    return Alert(
        name="HighFailureRate",
        severity=Severity.WARNING,
        expression=lines(expression),
        lasting=5 * MINUTE,
        summary="Many evaluations fail",
        description=(
            f"{{{{ $value | humanizePercentage }}}} of what ended in the last {window} was given up."
        ),
        action="scoreline batch list --status running",
    )


def _budget_nearly_spent(limits: Thresholds) -> Alert:
    return Alert(
        name="BudgetNearlySpent",
        severity=Severity.WARNING,
        expression=f"max by (batch_id) (eval_batch_budget_spent_ratio) > {limits.budget_share}",
        lasting=timedelta(),
        summary="A batch will soon pause: its budget is nearly spent",
        description=(
            "Batch {{ $labels.batch_id }} has spent {{ $value | humanizePercentage }} of its budget."
        ),
        action="scoreline batch status {{ $labels.batch_id }}",
    )


def _batch_completed(limits: Thresholds) -> Alert:
    age = "time() - max by (batch_id, status) (eval_batch_finished_timestamp_seconds)"
    return Alert(
        name="BatchCompleted",
        severity=Severity.INFO,
        expression=f"{age} < {seconds(limits.completed_window)}",
        lasting=timedelta(),
        summary="A batch has finished",
        description=(
            "Batch {{ $labels.batch_id }} finished {{ $value | humanizeDuration }} ago"
            " with status {{ $labels.status }}."
        ),
        action="scoreline batch status {{ $labels.batch_id }}",
    )
