"""Reasons why a batch makes no progress, or little, each with the command to type. Pure."""

import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta

from projections.queries.batches import WaitingCount
from scoreline.formatting import clock, excerpt, printable, span
from scoreline.invocation import as_started, batch_command
from scoreline.reports.batch_status import is_over, status_word
from scoreline.reports.batch_view import BatchView
from scoreline.reports.budgets import flags_to_go_on
from scoreline.reports.lanes import lane_lines
from scoreline.reports.provider_batches import provider_lines

UNMOVED = timedelta(minutes=1)
"""How long an evaluation may stay in one state before it is reported."""
OVERDUE = timedelta(seconds=20)
"""How late a retry may be; longer than a coordinator waits after its start before it opens attempts."""
CLAIMED_STATES = frozenset({"provisioning", "running", "responded"})


def reasons(view: BatchView) -> list[str]:
    """Return the reasons why a batch is not over, the most severe first; none for one that is over."""
    return [as_started(reason) for reason in _reasons(view)]


def _reasons(view: BatchView) -> list[str]:
    status = status_word(view.snapshot)
    if status == "paused":
        return [paused(view)]
    if is_over(view.snapshot):
        return []
    if view.is_abandoned:
        return [_abandoned(view)]
    if view.snapshot.progress.total and not view.snapshot.progress.pending:
        if view.snapshot.run_id:
            return ["All have ended, and the coordinator of its run has yet to close it."]
        return ["All have ended, and a coordinator has yet to close it: scoreline coordinator start"]
    if status in {"cancelled", "expired"}:
        return [
            f"{status.capitalize()}: {view.snapshot.progress.pending:,} evaluations have not ended yet."
        ]
    return [*_missing_processes(view), *_waits(view), *_unmoved(view)]


def paused(view: BatchView) -> str:
    """Return why a batch is paused, and the command that resumes it."""
    reason = excerpt(view.snapshot.reason, 300) or "requested by an operator"
    command = batch_command("resume", printable(view.snapshot.batch_id), *flags_to_go_on(view.snapshot))
    sentence = reason if reason.endswith((".", "?", "!")) else f"{reason}."
    return f"Paused: {sentence} To continue: {command}"


def _missing_processes(view: BatchView) -> Iterator[str]:
    if view.snapshot.kind == "external":
        return
    if view.fleet.unavailable:
        yield f"The executors that serve it are not known. {view.fleet.unavailable}"
    elif not view.fleet.serving(view.snapshot):
        yield _unserved(view)
    if view.unpublished and not view.waiting and not view.snapshot.run_id:
        yield "Nothing of it is published. Is a coordinator running? scoreline coordinator start"


def _abandoned(view: BatchView) -> str:
    """Return that no process of its local run is alive, and the command that resumes it."""
    return (
        "No process serves it: the command that ran it has ended, and no other run takes it over. "
        f"To continue: {batch_command('resume', printable(view.snapshot.batch_id))}"
    )


def _unserved(view: BatchView) -> str:
    """Return why no live executor serves a batch, and the command to type."""
    snapshot = view.snapshot
    command = batch_command("resume", printable(snapshot.batch_id))
    if snapshot.run_id:
        return "No executor of its run is alive: its processes are starting, or have just ended."
    if not view.fleet.live:
        return f"No executor is alive. To continue it here: {command}; in a fleet: scoreline worker start"
    if missing := _missing_labels(view):
        labels = " ".join(f"--label {shlex.quote(printable(label))}" for label in snapshot.requires)
        return (
            f"It requires {', '.join(map(printable, missing))}, which no live executor declares. "
            f"To start one: scoreline worker start {labels}; to continue it here: {command}"
        )
    project = printable(snapshot.project)
    return f"No executor takes tasks of project {project}; {len(view.fleet.live)} work for others."


def _missing_labels(view: BatchView) -> list[str]:
    """Return the labels that the executor closest to serving the batch does not declare."""
    fleet = [set(each.labels) for each in view.fleet.live if not each.run_id]
    missing = [[label for label in view.snapshot.requires if label not in labels] for labels in fleet]
    return min(missing, key=len, default=list(view.snapshot.requires))


def _waits(view: BatchView) -> Iterator[str]:
    for each in view.waiting:
        if each.state == "retrying" and each.next_retry is not None:
            due = _due(each.next_retry, view.snapshot.now)
            yield f"{each.count:,} wait for a retry; the first {due}."
    yield from lane_lines(view.lanes, view.snapshot.now)
    if view.serial:
        yield f"{view.serial:,} wait for an earlier evaluation of their serial group."
    yield from provider_lines(view.at_providers, view.snapshot.now)
    if view.unpublished and view.waiting:
        yield f"{view.unpublished:,} wait in Postgres until those before them have ended."


def _due(at: datetime, now: datetime) -> str:
    if at > now:
        return f"is due in {span(at - now)}, at {clock(at)} UTC"
    overdue = now - at
    late = ", so a coordinator is busy or missing" if overdue >= OVERDUE else ""
    return f"has been due for {span(overdue)}{late}"


def _unmoved(view: BatchView) -> Iterator[str]:
    oldest = min(view.waiting, key=_since, default=None)
    if oldest is None:
        return
    still = view.snapshot.now - oldest.unmoved_since
    if still >= UNMOVED:
        name = printable(oldest.oldest)
        state = f"{name}, {oldest.state} for {span(still)}"
        yield f"Longest without an event: {state}. Its history: scoreline replay {name}"


def _since(each: WaitingCount) -> tuple[bool, float]:
    # Claimed evaluations come first: a queued one may simply wait for its turn.
    return each.state not in CLAIMED_STATES, each.unmoved_since.timestamp()
