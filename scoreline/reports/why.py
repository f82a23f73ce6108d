"""Why a batch does not go on, or not faster, and what to do about it. Pure."""

import shlex
from collections.abc import Iterator
from datetime import datetime, timedelta

from projections.queries.batches import WaitingCount
from scoreline.formatting import clock, excerpt, printable, span
from scoreline.invocation import as_started, batch_command
from scoreline.reports.budgets import flags_to_go_on
from scoreline.reports.lanes import lane_lines
from scoreline.reports.look import Look
from scoreline.reports.provider_batches import provider_lines
from scoreline.reports.standing import is_over, status_word

UNMOVED = timedelta(minutes=1)
"""An evaluation that has not moved for so long is worth a look."""
OVERDUE = timedelta(seconds=20)
"""Longer than a coordinator that has just begun waits before it opens anything."""
IN_HAND = frozenset({"provisioning", "running", "responded"})


def reasons(look: Look) -> list[str]:
    """Say all that keeps a batch from its end, the gravest first; nothing of one that is over."""
    return [as_started(reason) for reason in _reasons(look)]


def _reasons(look: Look) -> list[str]:
    status = status_word(look.snapshot)
    if status == "paused":
        return [paused(look)]
    if is_over(look.snapshot):
        return []
    if look.is_abandoned:
        return [_abandoned(look)]
    if look.snapshot.total and not look.snapshot.pending:
        if look.snapshot.run_id:
            return ["All have ended, and the coordinator of its run has yet to close it."]
        return ["All have ended, and a coordinator has yet to close it: scoreline coordinator start"]
    if status in {"cancelled", "expired"}:
        return [f"{status.capitalize()}: {look.snapshot.pending:,} evaluations have yet to be told."]
    return [*_nobody_there(look), *_waits(look), *_unmoved(look)]


def paused(look: Look) -> str:
    """Say why a batch is paused, and how it goes on."""
    reason = excerpt(look.snapshot.reason, 300) or "somebody asked for it"
    again = batch_command("resume", printable(look.snapshot.batch_id), *flags_to_go_on(look.snapshot))
    sentence = reason if reason.endswith((".", "?", "!")) else f"{reason}."
    return f"Paused: {sentence} To go on: {again}"


def _nobody_there(look: Look) -> Iterator[str]:
    if look.snapshot.kind == "external":
        return
    if look.crew.away:
        yield f"Who works on it is not known. {look.crew.away}"
    elif not look.crew.serving(look.snapshot):
        yield _unserved(look)
    if look.unpublished and not look.waiting and not look.snapshot.run_id:
        yield "Nothing of it is published. Is a coordinator running? scoreline coordinator start"


def _abandoned(look: Look) -> str:
    """State that no process of its local run is alive, and the one command that helps."""
    return (
        "Nothing works on it: the command that ran it has ended, and no other run takes it over. "
        f"To go on: {batch_command('resume', printable(look.snapshot.batch_id))}"
    )


def _unserved(look: Look) -> str:
    """Say why no live executor may serve a batch, and what to type."""
    snapshot = look.snapshot
    again = batch_command("resume", printable(snapshot.batch_id))
    if snapshot.run_id:
        return "No executor of its run is alive: its processes are starting, or have just ended."
    if not look.crew.present:
        return f"No executor is alive. To go on with it here: {again}; in a fleet: scoreline worker start"
    if missing := _missing_labels(look):
        labels = " ".join(f"--label {shlex.quote(printable(label))}" for label in snapshot.requires)
        return (
            f"It requires {', '.join(map(printable, missing))}, which no live executor declares. "
            f"To start one: scoreline worker start {labels}; to go on with it here: {again}"
        )
    project = printable(snapshot.project)
    return f"No executor takes tasks of project {project}; {len(look.crew.present)} work for others."


def _missing_labels(look: Look) -> list[str]:
    """Return the labels that the executor closest to serving the batch does not declare."""
    fleet = [set(each.labels) for each in look.crew.present if not each.run_id]
    missing = [[label for label in look.snapshot.requires if label not in labels] for labels in fleet]
    return min(missing, key=len, default=list(look.snapshot.requires))


def _waits(look: Look) -> Iterator[str]:
    for each in look.waiting:
        if each.state == "retrying" and each.next_retry is not None:
            due = _due(each.next_retry, look.snapshot.now)
            yield f"{each.count:,} wait to be tried again; the first {due}."
    yield from lane_lines(look.lanes, look.snapshot.now)
    if look.serial:
        yield f"{look.serial:,} wait for an earlier evaluation of their serial group."
    yield from provider_lines(look.at_providers, look.snapshot.now)
    if look.unpublished and look.waiting:
        yield f"{look.unpublished:,} wait in Postgres until those before them have ended."


def _due(at: datetime, now: datetime) -> str:
    if at > now:
        return f"is due in {span(at - now)}, at {clock(at)} UTC"
    overdue = now - at
    late = ", so a coordinator is busy or missing" if overdue >= OVERDUE else ""
    return f"has been due for {span(overdue)}{late}"


def _unmoved(look: Look) -> Iterator[str]:
    oldest = min(look.waiting, key=_since, default=None)
    if oldest is None:
        return
    still = look.snapshot.now - oldest.unmoved_since
    if still >= UNMOVED:
        who = printable(oldest.oldest)
        what = f"{who}, {oldest.state} for {span(still)}"
        yield f"Unmoved for longest: {what}. Its story: scoreline replay {who}"


def _since(each: WaitingCount) -> tuple[bool, float]:
    # What is in somebody's hands comes first: what is queued waits for its turn.
    return each.state not in IN_HAND, each.unmoved_since.timestamp()
