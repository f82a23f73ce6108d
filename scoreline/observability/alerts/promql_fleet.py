"""Expressions of alerts about processes and servers: down, not responding, unreachable.

A process reports in two ways. Where Prometheus scrapes it, `up` is 0 when it does not answer, and a process
that shuts down removes its target. Where it exports to a collector, its series end, or stay unchanged for a
while, and `eval_worker_stopped_total` is its last value. A killed process has no series at all: every
expression here must hold without them.

Prometheus can name an executor only after it has scraped it once. Discovery and the first scrape take up to
two scrape intervals and ten seconds: an executor that dies earlier lowers `eval_workers_present` alone.
"""

from scoreline.observability.alerts.definition import AlertDefinition, duration
from scoreline.observability.alerts.promql import (
    Expression,
    has_heartbeats,
    has_running_batches,
    lines,
    seconds,
)
from scoreline.observability.thresholds import Thresholds

FROZEN = 0.8
"""A scrape that takes longer than this share of its time-out is of a frozen process; a dead one refuses."""


def _is_frozen(thresholds: Thresholds) -> str:
    waited = seconds(thresholds.scrape_timeout * FROZEN)
    return f'(up{{job="executor"}} == 0 and scrape_duration_seconds{{job="executor"}} > {waited})'


def _is_in_use(thresholds: Thresholds) -> str:
    return f"({has_running_batches(thresholds)} or {has_heartbeats(thresholds)})"


def _worker_down(_: AlertDefinition, thresholds: Thresholds) -> str:
    memory = duration(thresholds.memory_window)
    return lines(f"""
        (
          max by (job, instance, worker_id) (last_over_time(eval_worker_heartbeat_total[{memory}]))
          unless on (worker_id) {has_heartbeats(thresholds, by="worker_id")}
          unless on (instance, worker_id) last_over_time(eval_worker_stopped_total[{memory}]) > 0
          unless on (instance) {_is_frozen(thresholds)}
          unless on (instance)
            (last_over_time(up{{job="executor"}}[{memory}]) unless on (instance) up{{job="executor"}} == 0)
        )
        unless on ()
          (max(eval_workers_present) >= max(max_over_time(eval_workers_present[{memory}])))
    """)


def _worker_stalled(alert: AlertDefinition, thresholds: Thresholds) -> str:
    overdue = "max by (job, instance, worker_id) (eval_worker_oldest_task_overdue_seconds)"
    return lines(f"""
        {alert.condition.promql(overdue, thresholds)}
        or {_is_frozen(thresholds)}
        or (
          sum by (job, instance, worker_id)
            (rate(eval_worker_heartbeat_total[{duration(thresholds.beat_window)}])) == 0
          and on (instance) up{{job="executor"}} == 1
        )
    """)


def _all_workers_down(alert: AlertDefinition, thresholds: Thresholds) -> str:
    return lines(f"""
        (
          {alert.condition.promql("max(eval_workers_present)", thresholds)}
          or (absent(eval_workers_present) - 1) unless on () {has_heartbeats(thresholds)}
        )
        and on () {has_running_batches(thresholds)}
    """)


def _coordinator_down(alert: AlertDefinition, thresholds: Thresholds) -> str:
    # No coordinator can lead without the servers: one that reports a server as down is alive.
    leading = alert.condition.promql("(max(eval_coordinator_leading) or vector(0))", thresholds)
    return lines(f"""
        {leading}
        unless on () max by (dependency) (eval_dependency_up{{job="coordinator"}}) == 0
        and on () {_is_in_use(thresholds)}
    """)


def _storage_down(_: AlertDefinition, thresholds: Thresholds) -> str:
    return lines(f"""
        absent(eval_storage_lag_seconds)
        and on () {_is_in_use(thresholds)}
    """)


def _server_down(dependency: str) -> Expression:
    reached = f'max by (job, dependency) (eval_dependency_up{{dependency="{dependency}"}})'
    return lambda alert, thresholds: alert.condition.promql(reached, thresholds)


def _telemetry_down(alert: AlertDefinition, thresholds: Thresholds) -> str:
    return alert.condition.promql('up{job="otel-collector"}', thresholds)


FLEET: dict[str, Expression] = {
    "WorkerDown": _worker_down,
    "WorkerStalled": _worker_stalled,
    "AllWorkersDown": _all_workers_down,
    "CoordinatorDown": _coordinator_down,
    "StorageDown": _storage_down,
    "RedisDown": _server_down("redis"),
    "PostgresDown": _server_down("postgres"),
    "TelemetryDown": _telemetry_down,
}
"""Expressions by alert."""
