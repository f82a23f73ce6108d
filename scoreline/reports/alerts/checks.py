"""The measurements of every alert that one batch's view can decide. Pure.

A check measures; `observability/alerts/table.py` has condition, threshold and texts, for Prometheus too.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from domain.batch_spec import unpack
from executor.lanes.contract import BlockedBy
from projections.queries.batches import BatchSnapshot, WaitingCount
from scoreline.formatting import counted, printable
from scoreline.reports.alerts.measurement import AlertInputs, Check, Measurement
from scoreline.reports.fleet_status import FLEET_NOT_READ
from scoreline.reports.pace import remaining
from scoreline.reports.stall_reasons import CLAIMED_STATES

SATURATED = frozenset({BlockedBy.RATE, BlockedBy.TOKENS, BlockedBy.RETRY_AFTER})


def _redis_down(inputs: AlertInputs) -> Iterator[Measurement]:
    fleet = inputs.view.fleet
    if fleet.unavailable and fleet is not FLEET_NOT_READ:
        yield Measurement("redis", 0, detail=fleet.unavailable)


def _coordinator_down(inputs: AlertInputs) -> Iterator[Measurement]:
    yield Measurement("coordinator", 0 if inputs.view.leaderless else 1)


def _all_workers_down(inputs: AlertInputs) -> Iterator[Measurement]:
    fleet, snapshot = inputs.view.fleet, inputs.view.snapshot
    if not fleet.unavailable:
        detail = f"{counted(snapshot.progress.pending, 'evaluation')} pending."
        yield Measurement("executors", len(fleet.serving(snapshot)), detail=detail)


def _worker_down(inputs: AlertInputs) -> Iterator[Measurement]:
    if inputs.view.fleet.unavailable:
        return
    for name, since in inputs.window.lost.items():
        silent = inputs.now - since
        if silent < inputs.thresholds.memory_window:
            fields = {"worker_id": printable(name)}
            yield Measurement(name, silent.total_seconds(), fields, "Last heartbeat {value} ago.", since)


def _batch_stuck(inputs: AlertInputs) -> Iterator[Measurement]:
    """Neither tasks within their deadline nor requests at a provider are a standstill."""
    view, since = inputs.view, inputs.window.progressed_at
    oldest = _oldest_claimed(inputs)
    in_time = oldest is not None and inputs.now - oldest.unmoved_since <= _deadline(view.snapshot)
    at_provider = bool(view.at_providers.backlog.waiting) and not view.waiting
    if not in_time and not at_provider:
        yield Measurement("batch", (inputs.now - since).total_seconds(), since=since)


def _stuck_evaluations(inputs: AlertInputs) -> Iterator[Measurement]:
    if oldest := _oldest_claimed(inputs):
        deadline = oldest.unmoved_since + _deadline(inputs.view.snapshot)
        fields = {"evaluation_id": printable(oldest.oldest), "state": oldest.state}
        past = (inputs.now - deadline).total_seconds()
        yield Measurement(oldest.oldest, past, fields, since=oldest.unmoved_since)


def _queue_backlog(inputs: AlertInputs) -> Iterator[Measurement]:
    """Nothing is measured before the rate is known, nor where it is zero."""
    view, first = inputs.view, inputs.window.samples[0]
    watched = inputs.now - first.at
    if watched < inputs.thresholds.pace_window / 10:
        return
    ready = sum(each.count for each in view.waiting if each.state not in CLAIMED_STATES)
    ended = view.snapshot.progress.ended - first.progress.ended
    drain = remaining(ready, ended / watched.total_seconds())
    if drain is not None:
        yield Measurement("queue", drain.total_seconds())


def _dlq_growing(inputs: AlertInputs) -> Iterator[Measurement]:
    yield Measurement("dead letters", inputs.view.snapshot.progress.dead_letters)


def _high_failure_rate(inputs: AlertInputs) -> Iterator[Measurement]:
    progress, first = inputs.view.snapshot.progress, inputs.window.samples[0].progress
    failed, ended = progress.dead_letters - first.dead_letters, progress.executed - first.executed
    if ended and ended >= inputs.thresholds.failure_sample:
        yield Measurement("failures", failed / ended, detail=f"{failed:,} of the last {ended:,}.")


def _breaker_open(inputs: AlertInputs) -> Iterator[Measurement]:
    for wait in inputs.view.lanes:
        if wait.view.breaker != "closed":
            failures = wait.view.failures
            detail = f"{counted(failures, 'consecutive call')} failed."
            yield Measurement(wait.view.lane, failures, {"lane": printable(wait.view.lane)}, detail)


def _rate_limit_saturation(inputs: AlertInputs) -> Iterator[Measurement]:
    for wait in inputs.view.lanes:
        view = wait.view
        if view.breaker == "closed" and view.blocked_by in SATURATED and wait.behind and view.since:
            since = datetime.fromtimestamp(view.since, UTC)
            fields = {"lane": printable(view.lane), "waiting": counted(wait.behind, "task")}
            yield Measurement(view.lane, (inputs.now - since).total_seconds(), fields, since=since)


def _budget_nearly_spent(inputs: AlertInputs) -> Iterator[Measurement]:
    budget = inputs.view.snapshot.budget
    limits = ((budget.spent_usd, budget.max_cost_usd), (budget.spent_tokens, budget.max_tokens))
    if shares := [float(spent) / float(limit) for spent, limit in limits if limit]:
        yield Measurement("budget", max(shares))


FLEET_CHECKS: dict[str, Check] = {
    "RedisDown": _redis_down,
    "CoordinatorDown": _coordinator_down,
    "AllWorkersDown": _all_workers_down,
    "WorkerDown": _worker_down,
}
"""Alerts about the processes that serve a batch; an external batch has none."""
BATCH_CHECKS: dict[str, Check] = {
    "BatchStuck": _batch_stuck,
    "StuckEvaluations": _stuck_evaluations,
    "QueueBacklog": _queue_backlog,
    "DLQGrowing": _dlq_growing,
    "HighFailureRate": _high_failure_rate,
    "BreakerOpen": _breaker_open,
    "RateLimitSaturation": _rate_limit_saturation,
    "BudgetNearlySpent": _budget_nearly_spent,
}
"""Alerts about the batch itself."""


def _oldest_claimed(inputs: AlertInputs) -> WaitingCount | None:
    claimed = [each for each in inputs.view.waiting if each.state in CLAIMED_STATES]
    return min(claimed, key=lambda each: each.unmoved_since, default=None)


def _deadline(snapshot: BatchSnapshot) -> timedelta:
    """Return the deadline of one attempt."""
    return unpack(snapshot.spec).attempt_deadline if snapshot.spec else timedelta()
