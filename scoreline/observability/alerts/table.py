"""Every alert. `promql_*.py` has the expressions of the rules, `reports/alerts/checks.py` the checks."""

from datetime import timedelta

from scoreline.observability.alerts.definition import (
    AlertDefinition,
    Condition,
    Polled,
    Severity,
    ThresholdComparison,
    Unit,
)

MINUTE = timedelta(minutes=1)
CRITICAL, WARNING, INFO = Severity.CRITICAL, Severity.WARNING, Severity.INFO
COUNT, SHARE, SECONDS, RATE = Unit.COUNT, Unit.SHARE, Unit.SECONDS, Unit.RATE
BELOW = ThresholdComparison.BELOW

STATUS = "scoreline batch status {batch_id}"
RUNNING_BATCHES = "scoreline batch list --status running"
START_WORKER = "scoreline worker start"
RESUME = "scoreline batch resume {batch_id}"
EVERY_PROCESS = "it is measured by counters and gauges of processes that one batch does not know"

FLEET = (
    AlertDefinition(
        name="WorkerDown",
        severity=CRITICAL,
        condition=Condition("heartbeats counted before they stopped", COUNT, None),
        hold=MINUTE / 2,
        summary="An executor is down",
        message="Executor {worker_id} stopped sending heartbeats without deregistering."
        " Other executors reclaim its tasks.",
        detail="It sent {value} heartbeats from {instance}, and no other executor has replaced it.",
        action="docker compose ps executor; docker compose logs --tail 100 executor",
        polled=Polled(
            action=START_WORKER,
            condition=Condition(
                "time since the last heartbeat", SECONDS, "worker_silence", ThresholdComparison.AT_LEAST
            ),
        ),
    ),
    AlertDefinition(
        name="WorkerStalled",
        severity=WARNING,
        condition=Condition("time of a task past its time-out", SECONDS, "task_overdue"),
        hold=MINUTE,
        summary="An executor is not responding",
        message="Executor {worker_id} ({instance}) does not answer Prometheus, sends no heartbeats, or"
        " holds a task that is {value} past its time-out.",
        action="docker compose restart executor",
        prometheus_only=EVERY_PROCESS,
    ),
    AlertDefinition(
        name="AllWorkersDown",
        severity=CRITICAL,
        condition=Condition("live executors", COUNT, "min_workers", BELOW),
        hold=MINUTE,
        summary="Too few executors are alive",
        message="{value} executors are alive while batches are running; minimum: {threshold}.",
        action="docker compose up --detach executor; docker compose logs --tail 100 executor",
        polled=Polled(action=START_WORKER, local_action=RESUME, hold="worker_silence"),
    ),
    AlertDefinition(
        name="CoordinatorDown",
        severity=CRITICAL,
        condition=Condition("coordinators that hold the leader lock", COUNT, 1, BELOW),
        hold=MINUTE,
        summary="No coordinator is the leader",
        message="No coordinator holds the leader lock. Published tasks will finish; no"
        " evaluation is published or retried, and no batch finishes.",
        action="docker compose up --detach coordinator; docker compose logs --tail 100 coordinator",
        polled=Polled(action="scoreline coordinator start", local_action=RESUME, hold="worker_silence"),
    ),
    AlertDefinition(
        name="StorageDown",
        severity=CRITICAL,
        condition=Condition("absence of storage workers' metrics", COUNT, None),
        hold=MINUTE,
        summary="No storage worker is alive",
        message="No storage worker reports metrics. Events accumulate in Redis, and no result reaches"
        " PostgreSQL.",
        action="docker compose up --detach storage-worker; docker compose logs --tail 100 storage-worker",
        prometheus_only=EVERY_PROCESS,
    ),
    AlertDefinition(
        name="RedisDown",
        severity=CRITICAL,
        condition=Condition("processes of a service that reach Redis", COUNT, 1, BELOW),
        hold=MINUTE / 2,
        summary="Redis is unreachable",
        message="Redis is unreachable: tasks are not dispatched and events are not recorded.",
        detail="Reported by every {job} process.",
        action="docker compose ps redis; docker compose logs --tail 100 redis",
        polled=Polled(action=STATUS, hold="worker_silence"),
    ),
    AlertDefinition(
        name="PostgresDown",
        severity=CRITICAL,
        condition=Condition("processes of a service that reach PostgreSQL", COUNT, 1, BELOW),
        hold=MINUTE / 2,
        summary="PostgreSQL is unreachable",
        message="PostgreSQL is unreachable: batches are not accepted and results are not stored.",
        detail="Reported by every {job} process.",
        action="docker compose ps postgres; docker compose logs --tail 100 postgres",
        polled=Polled(action="scoreline batch list"),
    ),
    AlertDefinition(
        name="TelemetryDown",
        severity=CRITICAL,
        condition=Condition("collectors that answer Prometheus", COUNT, 1, BELOW),
        hold=MINUTE,
        summary="The OpenTelemetry collector is down",
        message="{instance} does not answer Prometheus. Other alerts are unreliable until it does.",
        action="docker compose --profile observe up --detach otel-collector",
        prometheus_only="the command line uses no collector",
    ),
)
"""Processes and servers."""

WORK = (
    AlertDefinition(
        name="QueueBacklog",
        severity=WARNING,
        condition=Condition("time to drain the queue at the current rate", SECONDS, "backlog_drain"),
        hold=10 * MINUTE,
        summary="Queue backlog",
        message="At the current rate the queue takes {value} to drain.",
        action="docker compose up --detach --scale executor=8",
        polled=Polled(action=START_WORKER),
    ),
    AlertDefinition(
        name="DLQGrowing",
        severity=WARNING,
        condition=Condition("new dead letters of a batch", COUNT, "dead_letters"),
        window="dead_letters_window",
        summary="Dead letters are accumulating",
        message="{value} evaluations of batch {batch_id} became dead letters.",
        detail="Counted over the last {window}.",
        action="scoreline batch dlq {batch_id}",
        polled=Polled(action="scoreline batch dlq {batch_id}"),
    ),
    AlertDefinition(
        name="StalledTasks",
        severity=WARNING,
        condition=Condition("reclaimed tasks", RATE, "stalled_claims_per_second"),
        hold=5 * MINUTE,
        window="taken_over_window",
        summary="Tasks are reclaimed repeatedly",
        message="{value} tasks per second are reclaimed from executors that stopped extending them.",
        action="docker compose logs --since 15m executor",
        prometheus_only=EVERY_PROCESS,
    ),
    AlertDefinition(
        name="BatchStuck",
        severity=WARNING,
        condition=Condition("time since an evaluation of the batch ended", SECONDS, "no_progress"),
        hold=MINUTE,
        summary="A batch makes no progress",
        message="No evaluation of batch {batch_id} has ended for {value}.",
        action=STATUS,
        polled=Polled(action=STATUS),
    ),
    AlertDefinition(
        name="StuckEvaluations",
        severity=WARNING,
        condition=Condition("stuck evaluations", COUNT, 0),
        hold=5 * MINUTE,
        window="stuck_beyond_timeout",
        summary="Evaluations are stuck",
        message="{value} evaluations have had no event for {window} beyond their time-out.",
        action=RUNNING_BATCHES,
        polled=Polled(
            action="scoreline replay {evaluation_id}",
            condition=Condition("time past an evaluation's time-out", SECONDS, "stuck_beyond_timeout"),
            message="Evaluation {evaluation_id} is {state} and has had no event for {value} beyond its"
            " time-out.",
        ),
    ),
    AlertDefinition(
        name="HighFailureRate",
        severity=WARNING,
        condition=Condition("share of ended evaluations that failed", SHARE, "failure_rate"),
        hold=5 * MINUTE,
        window="failure_window",
        summary="Many evaluations fail",
        message="{value} of the evaluations that ended recently became dead letters.",
        detail="Counted over the last {window}.",
        action=RUNNING_BATCHES,
        polled=Polled(action="scoreline batch dlq {batch_id}"),
    ),
    AlertDefinition(
        name="BudgetNearlySpent",
        severity=WARNING,
        condition=Condition("share of the budget that is spent", SHARE, "budget_share"),
        summary="A batch's budget is nearly spent",
        message="Batch {batch_id} has spent {value} of its budget; it pauses before it exceeds it.",
        action=STATUS,
        polled=Polled(action=STATUS),
    ),
    AlertDefinition(
        name="BatchCompleted",
        severity=INFO,
        condition=Condition("time since the batch finished", SECONDS, "completed_window", BELOW),
        summary="A batch has finished",
        message="Batch {batch_id} finished {value} ago with outcome {status}.",
        action=STATUS,
        prometheus_only="the status of a finished batch is its report",
    ),
)
"""Batches and the queue."""

PROVIDERS = (
    AlertDefinition(
        name="RateLimitSaturation",
        severity=INFO,
        condition=Condition("95th percentile of waits for a permit", SECONDS, "rate_limit_p95"),
        hold=10 * MINUTE,
        window="provider_window",
        summary="Executors wait for a rate limit",
        message="Calls wait {value} (95th percentile) for a permit of lane {lane}.",
        action=RUNNING_BATCHES,
        polled=Polled(
            action=STATUS,
            condition=Condition("time since the lane granted a permit", SECONDS, "rate_limit_wait"),
            message="Lane {lane} has granted no permit for {value}; {waiting} wait for it.",
        ),
    ),
    AlertDefinition(
        name="LLMAPIErrors",
        severity=WARNING,
        condition=Condition("failed calls", RATE, "llm_errors_per_second"),
        hold=5 * MINUTE,
        window="provider_window",
        summary="Calls to a provider fail",
        message="{value} calls per second to {provider} fail with {kind}.",
        action="docker compose logs --since 15m executor",
        prometheus_only=EVERY_PROCESS,
    ),
    AlertDefinition(
        name="BreakerOpen",
        severity=WARNING,
        condition=Condition("state of the circuit breaker (1 half open, 2 open)", COUNT, 0),
        hold=MINUTE,
        summary="A circuit breaker is open",
        message="The circuit breaker of lane {lane} is open: calls to the provider failed repeatedly.",
        action=RUNNING_BATCHES,
        polled=Polled(action=STATUS, condition=Condition("consecutive failed calls", COUNT, None)),
    ),
)
"""Lanes and providers."""

STORAGE = (
    AlertDefinition(
        name="StorageLag",
        severity=WARNING,
        condition=Condition("age of the oldest event that is not stored", SECONDS, "storage_lag"),
        hold=5 * MINUTE,
        summary="Results reach PostgreSQL late",
        message="Storage workers are {value} behind the event log.",
        action="docker compose up --detach --scale storage-worker=4",
        prometheus_only=EVERY_PROCESS,
    ),
    AlertDefinition(
        name="GapsGrowing",
        severity=WARNING,
        condition=Condition("new evaluations with a gap", COUNT, "gaps"),
        hold=MINUTE,
        window="gap_window",
        summary="Events are missing",
        message="{value} more evaluations than {window} ago have a gap in their event sequence.",
        action=RUNNING_BATCHES,
        prometheus_only=EVERY_PROCESS,
    ),
    AlertDefinition(
        name="QuarantineGrowing",
        severity=WARNING,
        condition=Condition("quarantined entries", COUNT, 0),
        window="quarantine_window",
        summary="Stream entries were quarantined",
        message="Entries quarantined within {window}: {value}.",
        action="scoreline quarantine list",
        prometheus_only=EVERY_PROCESS,
    ),
)
"""The path from the event log to the tables."""

ALERTS = {alert.name: alert for alert in (*FLEET, *WORK, *PROVIDERS, *STORAGE)}
"""Definitions by name."""
