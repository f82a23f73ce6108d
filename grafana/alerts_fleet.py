"""Alerts about processes and servers: gone, frozen, out of reach.

A process can be watched in two ways. Where Prometheus asks it, `up` tells whether it answers, and one that
ends in good order takes its address away. Where it sends its numbers to a collector, they stop coming, or
come unchanged for a while, and `eval_worker_stopped_total` is the last it says. A process that is gone has
no series at all: every rule here must be true of that, too.
"""

from collections.abc import Iterator
from datetime import timedelta

from grafana.alert import Alert, Severity, is_beating, is_working, lines, seconds, time
from scoreline.observability.thresholds import Thresholds

MINUTE = timedelta(minutes=1)
FROZEN = 0.8
"""Who has not answered for this share of the time-out is frozen; a dead one refuses at once."""


def fleet(limits: Thresholds) -> Iterator[Alert]:
    """List them."""
    yield _worker_down(limits)
    yield _worker_stalled(limits)
    yield _all_workers_down(limits)
    yield _coordinator_down(limits)
    yield _storage_down(limits)
    yield _server_down("RedisDown", "redis", "Redis", "Nothing can be handed out or recorded.")
    yield _server_down("PostgresDown", "postgres", "PostgreSQL", "Nothing can be accepted or stored.")
    yield _telemetry_down()


def _is_frozen(limits: Thresholds) -> str:
    waited = seconds(limits.scrape_timeout * FROZEN)
    return f'(up{{job="executor"}} == 0 and scrape_duration_seconds{{job="executor"}} > {waited})'


def _worker_down(limits: Thresholds) -> Alert:
    memory = time(limits.memory_window)
    expression = f"""
        (
          max by (job, instance, worker_id) (last_over_time(eval_worker_heartbeat_total[{memory}]))
          unless on (worker_id) {is_beating(limits, by="worker_id")}
          unless on (instance, worker_id) last_over_time(eval_worker_stopped_total[{memory}]) > 0
          unless on (instance) {_is_frozen(limits)}
          unless on (instance)
            (last_over_time(up{{job="executor"}}[{memory}]) unless on (instance) up{{job="executor"}} == 0)
        )
        unless on ()
          (max(eval_workers_present) >= max(max_over_time(eval_workers_present[{memory}])))
    """
    return Alert(
        name="WorkerDown",
        severity=Severity.CRITICAL,
        expression=lines(expression),
        lasting=MINUTE / 2,
        summary="An executor is gone, and did not say goodbye",
        description=(
            "Executor {{ $labels.worker_id }} ({{ $labels.instance }}) sent {{ $value }} heartbeats and"
            " then no more, and no other has taken its place. What it had in hand is given to others."
        ),
        action="docker compose ps executor; docker compose logs --tail 100 executor",
    )


def _worker_stalled(limits: Thresholds) -> Alert:
    overdue = "eval_worker_oldest_task_overdue_seconds"
    expression = f"""
        max by (job, instance, worker_id) ({overdue}) > {seconds(limits.task_overdue)}
        or {_is_frozen(limits)}
        or (
          sum by (job, instance, worker_id)
            (rate(eval_worker_heartbeat_total[{time(limits.beat_window)}])) == 0
          and on (instance) up{{job="executor"}} == 1
        )
    """
    return Alert(
        name="WorkerStalled",
        severity=Severity.WARNING,
        expression=lines(expression),
        lasting=MINUTE,
        summary="An executor hangs",
        description=(
            "Executor {{ $labels.worker_id }} ({{ $labels.instance }}) does not answer, sends no heartbeat,"
            " or has had a task for {{ $value | humanizeDuration }} longer than the task's time-out."
        ),
        action="docker compose restart executor",
    )


def _all_workers_down(limits: Thresholds) -> Alert:
    expression = f"""
        (
          max(eval_workers_present) < {limits.min_workers}
          or (absent(eval_workers_present) - 1) unless on () {is_beating(limits)}
        )
        and on () {is_working(limits)}
    """
    return Alert(
        name="AllWorkersDown",
        severity=Severity.CRITICAL,
        expression=lines(expression),
        lasting=MINUTE,
        summary="No executor is alive",
        description="{{ $value }} executors are alive, and batches are running: nothing goes on.",
        action="docker compose up --detach executor; docker compose logs --tail 100 executor",
    )


def _coordinator_down(limits: Thresholds) -> Alert:
    # Nobody can lead without the servers: whoever says that one is away is there, and its alert tells.
    expression = f"""
        (max(eval_coordinator_leading) or vector(0)) < 1
        unless on () max by (dependency) (eval_dependency_up{{job="coordinator"}}) == 0
        and on () ({is_working(limits)} or {is_beating(limits)})
    """
    return Alert(
        name="CoordinatorDown",
        severity=Severity.CRITICAL,
        expression=lines(expression),
        lasting=MINUTE,
        summary="No coordinator leads",
        description=(
            "{{ $value }} coordinators lead. What is handed out will be finished; nothing new is"
            " published, retried or closed."
        ),
        action="docker compose up --detach coordinator; docker compose logs --tail 100 coordinator",
    )


def _storage_down(limits: Thresholds) -> Alert:
    expression = f"""
        absent(eval_storage_lag_seconds)
        and on () ({is_working(limits)} or {is_beating(limits)})
    """
    return Alert(
        name="StorageDown",
        severity=Severity.CRITICAL,
        expression=lines(expression),
        lasting=MINUTE,
        summary="No storage worker is alive",
        description="Events pile up in Redis, and no result reaches PostgreSQL.",
        action="docker compose up --detach storage-worker; docker compose logs --tail 100 storage-worker",
    )


def _server_down(name: str, dependency: str, server: str, then: str) -> Alert:
    return Alert(
        name=name,
        severity=Severity.CRITICAL,
        expression=f'max by (job, dependency) (eval_dependency_up{{dependency="{dependency}"}}) == 0',
        lasting=MINUTE / 2,
        summary=f"{server} is out of reach",
        description=f"No {{{{ $labels.job }}}} gets through to {server}. {then}",
        action=f"docker compose ps {dependency}; docker compose logs --tail 100 {dependency}",
    )


def _telemetry_down() -> Alert:
    return Alert(
        name="TelemetryDown",
        severity=Severity.CRITICAL,
        expression='up{job="otel-collector"} == 0',
        lasting=MINUTE,
        summary="The collector is gone: Prometheus is blind",
        description="{{ $labels.instance }} does not answer. No other alert can be trusted until it does.",
        action="docker compose --profile observe up --detach otel-collector",
    )
