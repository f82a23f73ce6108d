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
from scoreline.reports.crew import NOT_ASKED
from scoreline.reports.pace import remaining
from scoreline.reports.why import IN_HAND

SATURATED = frozenset({BlockedBy.RATE, BlockedBy.TOKENS, BlockedBy.RETRY_AFTER})


def _redis_down(inputs: AlertInputs) -> Iterator[Measurement]:
    crew = inputs.look.crew
    if crew.away and crew is not NOT_ASKED:
        yield Measurement("redis", 0, detail=crew.away)


def _coordinator_down(inputs: AlertInputs) -> Iterator[Measurement]:
    yield Measurement("coordinator", 0 if inputs.look.leaderless else 1)


def _all_workers_down(inputs: AlertInputs) -> Iterator[Measurement]:
    crew, snapshot = inputs.look.crew, inputs.look.snapshot
    if not crew.away:
        detail = f"{counted(snapshot.pending, 'evaluation')} pending."
        yield Measurement("executors", len(crew.serving(snapshot)), detail=detail)


def _worker_down(inputs: AlertInputs) -> Iterator[Measurement]:
    if inputs.look.crew.away:
        return
    for name, since in inputs.window.lost.items():
        silent = inputs.now - since
        if silent < inputs.thresholds.memory_window:
            fields = {"worker_id": printable(name)}
            yield Measurement(name, silent.total_seconds(), fields, "Last heartbeat {value} ago.", since)


def _batch_stuck(inputs: AlertInputs) -> Iterator[Measurement]:
    """Neither tasks within their deadline nor requests at a provider are a standstill."""
    look, since = inputs.look, inputs.window.progressed_at
    oldest = _oldest_claimed(inputs)
    in_time = oldest is not None and inputs.now - oldest.unmoved_since <= _deadline(look.snapshot)
    at_provider = bool(look.at_providers.backlog.waiting) and not look.waiting
    if not in_time and not at_provider:
        yield Measurement("batch", (inputs.now - since).total_seconds(), since=since)


def _stuck_evaluations(inputs: AlertInputs) -> Iterator[Measurement]:
    if oldest := _oldest_claimed(inputs):
        deadline = oldest.unmoved_since + _deadline(inputs.look.snapshot)
        fields = {"evaluation_id": printable(oldest.oldest), "state": oldest.state}
        past = (inputs.now - deadline).total_seconds()
        yield Measurement(oldest.oldest, past, fields, since=oldest.unmoved_since)


def _queue_backlog(inputs: AlertInputs) -> Iterator[Measurement]:
    """Nothing is measured before the rate is known, nor where it is zero."""
    look, first = inputs.look, inputs.window.samples[0]
    watched = inputs.now - first.at
    if watched < inputs.thresholds.pace_window / 10:
        return
    ready = sum(each.count for each in look.waiting if each.state not in IN_HAND)
    drain = remaining(ready, (look.snapshot.done - first.done) / watched.total_seconds())
    if drain is not None:
        yield Measurement("queue", drain.total_seconds())


def _dlq_growing(inputs: AlertInputs) -> Iterator[Measurement]:
    yield Measurement("dead letters", inputs.look.snapshot.dead_letters)


def _high_failure_rate(inputs: AlertInputs) -> Iterator[Measurement]:
    snapshot, first = inputs.look.snapshot, inputs.window.samples[0]
    failed = snapshot.dead_letters - first.dead
    ended = snapshot.completed + snapshot.dead_letters - first.ended
    if ended and ended >= inputs.thresholds.failure_sample:
        yield Measurement("failures", failed / ended, detail=f"{failed:,} of the last {ended:,}.")


def _breaker_open(inputs: AlertInputs) -> Iterator[Measurement]:
    for wait in inputs.look.lanes:
        if wait.view.breaker != "closed":
            failures = wait.view.failures
            detail = f"{counted(failures, 'consecutive call')} failed."
            yield Measurement(wait.view.lane, failures, {"lane": printable(wait.view.lane)}, detail)


def _rate_limit_saturation(inputs: AlertInputs) -> Iterator[Measurement]:
    for wait in inputs.look.lanes:
        view = wait.view
        if view.breaker == "closed" and view.blocked_by in SATURATED and wait.behind and view.since:
            since = datetime.fromtimestamp(view.since, UTC)
            fields = {"lane": printable(view.lane), "waiting": counted(wait.behind, "task")}
            yield Measurement(view.lane, (inputs.now - since).total_seconds(), fields, since=since)


def _budget_nearly_spent(inputs: AlertInputs) -> Iterator[Measurement]:
    budget = inputs.look.snapshot.budget
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
    claimed = [each for each in inputs.look.waiting if each.state in IN_HAND]
    return min(claimed, key=lambda each: each.unmoved_since, default=None)


def _deadline(snapshot: BatchSnapshot) -> timedelta:
    """Return the deadline of one attempt."""
    return unpack(snapshot.spec).attempt_deadline if snapshot.spec else timedelta()
