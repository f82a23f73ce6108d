"""Expressions of alerts about batches, the queue, providers and storage."""

from scoreline.observability.alerts.definition import AlertDefinition, duration
from scoreline.observability.alerts.promql import Expression, increase_from_zero, lines, seconds
from scoreline.observability.thresholds import Thresholds


def _queue_backlog(alert: AlertDefinition, thresholds: Thresholds) -> str:
    # A queue that does not drain at all is BatchStuck, not a backlog.
    return lines(f"""
        sum(eval_queue_pending_tasks)
        / (sum(rate(eval_queue_ack_total[{duration(thresholds.pace_window)}])) > 0)
        {alert.condition.promql("", thresholds).strip()}
    """)


def _dlq_growing(alert: AlertDefinition, thresholds: Thresholds) -> str:
    # A batch that is younger than the window had no dead letters when it began.
    window = duration(thresholds.dead_letters_window)
    age = seconds(thresholds.dead_letters_window)
    return lines(f"""
        max by (batch_id) (eval_queue_dlq_size)
        - on (batch_id) (
          (
            max by (batch_id) (min_over_time(eval_queue_dlq_size[{window}]))
            unless on (batch_id) time() - max by (batch_id) (eval_batch_started_timestamp_seconds) < {age}
          )
          or 0 * max by (batch_id) (eval_queue_dlq_size)
        {alert.condition.promql(")", thresholds)}
    """)


def _stalled_tasks(alert: AlertDefinition, thresholds: Thresholds) -> str:
    window = thresholds.taken_over_window
    rate = f"{increase_from_zero('eval_queue_claim_total', window)} / {seconds(window)}"
    return alert.condition.promql(rate, thresholds)


def _batch_stuck(alert: AlertDefinition, thresholds: Thresholds) -> str:
    # Neither tasks within their time-outs nor requests at a provider are a standstill.
    idle = alert.condition.promql("max by (batch_id) (eval_batch_idle_seconds)", thresholds)
    return lines(f"""
        ({idle})
        unless on (batch_id) (
          (max by (batch_id) (eval_queue_owned_tasks) > 0)
          unless on () (max(eval_worker_oldest_task_overdue_seconds) > 0)
        )
        unless on (batch_id) (
          (
            max by (batch_id) (eval_queue_pending_tasks)
            + on (batch_id) max by (batch_id) (eval_queue_owned_tasks)
          ) == 0
          and on () sum(eval_batch_api_open) > 0
        )
    """)


def _high_failure_rate(alert: AlertDefinition, thresholds: Thresholds) -> str:
    window = duration(thresholds.failure_window)
    ended = 'eval_worker_tasks_processed_total{status=~"success|failure|timeout"}'
    failed = 'eval_worker_tasks_processed_total{status=~"failure|timeout"}'
    share = f"sum(rate({failed}[{window}])) / sum(rate({ended}[{window}]))"
    return lines(f"""
        {alert.condition.promql(share, thresholds)}
        and sum(increase({ended}[{window}])) >= {thresholds.failure_sample}
    """)


def _rate_limit_saturation(alert: AlertDefinition, thresholds: Thresholds) -> str:
    # Without a permit no wait is measured: a lane that only refuses has an infinite wait.
    window = duration(thresholds.provider_window)
    buckets = f"sum by (lane, le) (rate(eval_rate_limit_wait_ms_bucket[{window}]))"
    return lines(f"""
        {alert.condition.promql(f"histogram_quantile(0.95, {buckets}) / 1000", thresholds)}
        or Inf * (
          sum by (lane) (rate(eval_rate_limit_refused_total{{why!="breaker"}}[{window}])) > 0
          unless on (lane) sum by (lane) (rate(eval_rate_limit_acquired_total[{window}])) > 0
        )
    """)


def _llm_api_errors(alert: AlertDefinition, thresholds: Thresholds) -> str:
    window = duration(thresholds.provider_window)
    errors = f"rate(eval_llm_errors_total[{window}])"
    calls = f"sum(rate(eval_rate_limit_acquired_total[{window}]))"
    return lines(f"""
        {alert.condition.promql(f"sum by (provider, kind) ({errors})", thresholds)}
        unless on () sum({errors}) < {thresholds.llm_error_share} * {calls}
    """)


def _gaps_growing(alert: AlertDefinition, thresholds: Thresholds) -> str:
    window = duration(thresholds.gap_window)
    open_gaps = f"sum(eval_storage_gaps_open) - sum(min_over_time(eval_storage_gaps_open[{window}]))"
    bridged = increase_from_zero("eval_storage_gaps_bridged_total", thresholds.gap_window)
    return lines(f"""
        (
          {alert.condition.promql(open_gaps, thresholds)}
          and on () max(eval_storage_gap_age_seconds) > {seconds(thresholds.gap_age)}
        )
        or {alert.condition.promql(bridged, thresholds)}
    """)


def _quarantine_growing(alert: AlertDefinition, thresholds: Thresholds) -> str:
    entries = increase_from_zero("eval_storage_quarantined_total", thresholds.quarantine_window)
    return alert.condition.promql(entries, thresholds)


def _measured_by(expression: str) -> Expression:
    return lambda alert, thresholds: alert.condition.promql(expression, thresholds)


WORK: dict[str, Expression] = {
    "QueueBacklog": _queue_backlog,
    "DLQGrowing": _dlq_growing,
    "StalledTasks": _stalled_tasks,
    "BatchStuck": _batch_stuck,
    "StuckEvaluations": _measured_by("max(eval_stuck_evaluations)"),
    "HighFailureRate": _high_failure_rate,
    "BudgetNearlySpent": _measured_by("max by (batch_id) (eval_batch_budget_spent_ratio)"),
    "BatchCompleted": _measured_by(
        "time() - max by (batch_id, status) (eval_batch_finished_timestamp_seconds)"
    ),
    "RateLimitSaturation": _rate_limit_saturation,
    "LLMAPIErrors": _llm_api_errors,
    "BreakerOpen": _measured_by("max by (lane) (eval_lane_breaker_state)"),
    "StorageLag": _measured_by("max(eval_storage_lag_seconds)"),
    "GapsGrowing": _gaps_growing,
    "QuarantineGrowing": _quarantine_growing,
}
"""Expressions by alert."""
