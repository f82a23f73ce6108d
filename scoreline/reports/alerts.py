"""What is wrong with a batch, given a look at it and what was seen before. Pure.

Names and thresholds are those of the alerts in `grafana/alerts.py`. What needs counters of every process,
as errors of providers do, is not to be seen from here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from domain.batch_spec import unpack
from executor.lanes.contract import BlockedBy
from projections.queries.batches import BatchSnapshot, WaitingCount
from scoreline.formatting import counted, printable, span
from scoreline.invocation import batch_command
from scoreline.observability.thresholds import Thresholds
from scoreline.reports.alert_measure import Measure, lasting, share
from scoreline.reports.alerts_past import Past
from scoreline.reports.crew import NOT_ASKED
from scoreline.reports.look import Look
from scoreline.reports.pace import remaining
from scoreline.reports.standing import is_over
from scoreline.reports.why import IN_HAND

SATURATED = frozenset({BlockedBy.RATE, BlockedBy.TOKENS, BlockedBy.RETRY_AFTER})
START_WORKER = "scoreline worker start"
START_COORDINATOR = "scoreline coordinator start"
NO_PATIENCE = timedelta()


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong."""

    name: str
    """The alert's."""
    about: str
    """Whom or what it is about; with the name, what makes it this trouble and no other."""
    words: str
    action: str
    """What to type."""
    patience: timedelta = NO_PATIENCE
    """How long it must last before anybody is told: it may be over with the next look."""
    measure: Measure | None = None
    since: datetime | None = None
    """When the condition began, where that is known of it."""


def troubles(look: Look, past: Past, limits: Thresholds) -> list[Trouble]:
    """Say all that is wrong, the gravest first; nothing of a batch that is over or paused."""
    if is_over(look.snapshot) or not look.snapshot.pending:
        return []
    ours = look.snapshot.kind != "external"
    return [
        *(_servers(look, limits) if ours else ()),
        *(_workers(look, past, limits) if ours else ()),
        *_standstill(look, past, limits),
        *_failures(look, past, limits),
        *_lanes(look, limits),
        *_budget(look.snapshot, limits),
    ]


def _servers(look: Look, limits: Thresholds) -> Iterator[Trouble]:
    patience = limits.worker_silence
    if look.crew.away and look.crew is not NOT_ASKED:
        yield Trouble("RedisDown", "redis", look.crew.away, batch_command("status", _id(look)), patience)
    if look.leaderless:
        words = "no coordinator leads: nothing new is published, retried or closed."
        yield Trouble("CoordinatorDown", "coordinator", words, _start(look, START_COORDINATOR), patience)


def _start(look: Look, of_the_fleet: str) -> str:
    """Name the command that starts what is missing: a local run has its own coordinator and executors."""
    return batch_command("resume", _id(look)) if look.snapshot.run_id else of_the_fleet


def _workers(look: Look, past: Past, limits: Thresholds) -> Iterator[Trouble]:
    if look.crew.away:
        return
    serving = len(look.crew.serving(look.snapshot))
    if serving < limits.min_workers:
        words = f"{counted(serving, 'executor')} alive, {look.snapshot.pending:,} evaluations wait."
        measure = Measure(serving, limits.min_workers)
        start = _start(look, START_WORKER)
        yield Trouble("AllWorkersDown", "executors", words, start, limits.worker_silence, measure)
    for name, since in past.lost.items():
        silent = look.snapshot.now - since
        if limits.worker_silence <= silent < limits.memory_window:
            words = f"executor {printable(name)} has not been heard of for {_whole(silent)}."
            measure = lasting(silent, limits.worker_silence)
            yield Trouble("WorkerDown", name, words, START_WORKER, measure=measure, since=since)


def _standstill(look: Look, past: Past, limits: Thresholds) -> Iterator[Trouble]:
    now, timeout = look.snapshot.now, _timeout(look.snapshot)
    held = [each for each in look.waiting if each.state in IN_HAND]
    oldest = min(held, key=lambda each: each.unmoved_since, default=None)
    idle = now - past.progressed_at
    in_time = oldest is not None and now - oldest.unmoved_since <= timeout
    elsewhere = bool(look.at_providers.backlog.waiting) and not look.waiting
    if idle > limits.no_progress and not in_time and not elsewhere:
        words = f"nothing of it has ended for {span(idle)}."
        measure, since = lasting(idle, limits.no_progress), past.progressed_at
        again = batch_command("status", _id(look))
        yield Trouble("BatchStuck", "batch", words, again, measure=measure, since=since)
    if oldest and now - oldest.unmoved_since > timeout + limits.stuck_beyond_timeout:
        yield _stuck(oldest, now, timeout + limits.stuck_beyond_timeout)
    drain = _drain(look, past, limits)
    if drain is not None and drain > limits.backlog_drain:
        words = f"at the present pace, what executors know of takes {span(drain)}."
        measure = lasting(drain, limits.backlog_drain)
        yield Trouble("QueueBacklog", "queue", words, START_WORKER, measure=measure)


def _stuck(oldest: WaitingCount, now: datetime, allowed: timedelta) -> Trouble:
    who = printable(oldest.oldest)
    words = f"{who} has been {oldest.state} for {span(now - oldest.unmoved_since)}."
    measure, since = lasting(now - oldest.unmoved_since, allowed), oldest.unmoved_since
    action = f"scoreline replay {who}"
    return Trouble("StuckEvaluations", oldest.oldest, words, action, measure=measure, since=since)


def _drain(look: Look, past: Past, limits: Thresholds) -> timedelta | None:
    """Say how long what is queued will take; None where the pace is not known, or there is none."""
    watched = look.snapshot.now - past.marks[0].at
    if watched < limits.pace_window / 10:
        return None
    ready = sum(each.count for each in look.waiting if each.state not in IN_HAND)
    done = look.snapshot.done - past.marks[0].done
    return remaining(ready, done / watched.total_seconds())


def _failures(look: Look, past: Past, limits: Thresholds) -> Iterator[Trouble]:
    dead, again = look.snapshot.dead_letters, batch_command("dlq", _id(look))
    if dead > limits.dead_letters:
        words, measure = f"{dead:,} evaluations were given up.", Measure(dead, limits.dead_letters)
        yield Trouble("DLQGrowing", "dead letters", words, again, measure=measure)
    before = past.marks[0]
    given_up = dead - before.dead
    ended = look.snapshot.completed + dead - before.ended
    if ended >= limits.failure_sample and given_up > limits.failure_rate * ended:
        words = f"{given_up / ended:.0%} of the last {ended:,} evaluations were given up."
        measure = share(given_up / ended, limits.failure_rate)
        yield Trouble("HighFailureRate", "failures", words, again, measure=measure)


def _lanes(look: Look, limits: Thresholds) -> Iterator[Trouble]:
    again = batch_command("status", _id(look))
    for wait in look.lanes:
        lane = printable(wait.view.lane)
        if wait.view.breaker != "closed":
            words = f"{lane} does not answer: {counted(wait.view.failures, 'call')} in a row failed."
            measure = Measure(wait.view.failures, None)
            yield Trouble("BreakerOpen", wait.view.lane, words, again, measure=measure)
        elif wait.view.blocked_by in SATURATED and wait.behind and wait.view.since:
            since = datetime.fromtimestamp(wait.view.since, UTC)
            waited = look.snapshot.now - since
            if waited > limits.rate_limit_wait:
                words = (
                    f"{lane} has had nothing for {span(waited)}; {counted(wait.behind, 'task')} behind it."
                )
                measure = lasting(waited, limits.rate_limit_wait)
                yield Trouble(
                    "RateLimitSaturation", wait.view.lane, words, again, measure=measure, since=since
                )


def _budget(snapshot: BatchSnapshot, limits: Thresholds) -> Iterator[Trouble]:
    purse = snapshot.purse
    shares = [
        float(spent) / float(limit)
        for spent, limit in (
            (purse.spent_usd, purse.max_cost_usd),
            (purse.spent_tokens, purse.max_tokens),
        )
        if limit
    ]
    if shares and max(shares) > limits.budget_share:
        words = f"{max(shares):.0%} of its budget is spent; once all of it is, the batch pauses."
        again = batch_command("status", printable(snapshot.batch_id))
        measure = share(max(shares), limits.budget_share)
        yield Trouble("BudgetNearlySpent", "budget", words, again, measure=measure)


def _id(look: Look) -> str:
    return printable(look.snapshot.batch_id)


def _timeout(snapshot: BatchSnapshot) -> timedelta:
    """Return the deadline of one attempt."""
    return unpack(snapshot.spec).attempt_deadline if snapshot.spec else timedelta()


def _whole(time: timedelta) -> str:
    return f"{time.total_seconds():.0f} s" if time < timedelta(minutes=2) else span(time)
