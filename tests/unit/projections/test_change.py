"""What a walk through a stream changes in the tables."""

from datetime import date

import pytest

from eventlog import payloads as p
from eventlog.codec import QuarantineReason, RejectedEntry, encode
from eventlog.events import Event
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor, replay
from projections.folds.change import Change, EvaluationRow, fold, quarantine_row
from tests.builders import BATCH, CASE, EVALUATION, FIRST_ARRIVAL_MS, arrive, event, history

MONTH = date(2026, 1, 1)
AT_ONCE = 2**62
SETTLED = {"failed": Phase.FAILED, "timed_out": Phase.TIMED_OUT}


def change(*events: Event, row: EvaluationRow | None = None, bridge_until_ms: int | None = None) -> Change:
    """Fold events in their order of arrival, on top of a row if there is one."""
    known = row or EvaluationRow(EVALUATION, BATCH, MONTH, Cursor())
    walked = replay(known.cursor, arrive(events), bridge_until_ms=bridge_until_ms)
    return fold(known, 3, walked, exists=row is not None)


def at(cursor: Cursor, *, owner: str | None = "executor-0", bridged: bool = False) -> EvaluationRow:
    return EvaluationRow(EVALUATION, BATCH, MONTH, cursor, owner, bridged, "1-0")


# Rows and events.


def test_a_first_look_creates_the_row_and_counts_the_evaluation():
    """There must be no row yet, and the batch has one evaluation more."""
    made = change(*history("queued provisioning running"))
    assert (made.before, made.after) == (None, Cursor(1, 2, Phase.RUNNING))
    assert (made.progress.total, made.owner, made.shard) == (1, "executor-1", 3)
    assert made.moves


def test_an_evaluation_is_counted_even_if_nothing_could_be_applied_yet():
    """What waits for its opening has a row, so that a sweep finds it again."""
    made = change(*history("provisioning running", first=1))
    assert (made.before, made.after) == (None, Cursor())
    assert (made.progress.total, made.events, made.moves) == (1, [], True)


def test_a_later_look_moves_the_row_by_what_is_new():
    """The row must still be where it was read, and nothing is counted twice."""
    known = at(Cursor(1, 1, Phase.PROVISIONING))
    moved = change(*history("running completed", first=2), row=known)
    assert (moved.before, moved.after) == (known.cursor, Cursor(1, 3, Phase.COMPLETED))
    assert (moved.progress.total, moved.progress.completed, moved.owner) == (0, 1, "executor-0")


def test_nothing_new_changes_nothing():
    """An empty look is an empty change."""
    idle = change(row=at(Cursor(1, 1, Phase.PROVISIONING)))
    assert idle.is_empty
    assert not idle.moves


def test_each_event_is_kept_byte_for_byte_with_where_it_arrived():
    """An event's row is its key, its verdict, its times and its body."""
    queued = event("queued")
    (kept,) = change(queued).events
    assert kept[:6] == (MONTH, EVALUATION, 1, 0, "queued", "applied")
    assert kept[6:] == (queued.occurred_at, f"{FIRST_ARRIVAL_MS}-0", encode(queued))


def test_the_head_is_the_newest_entry_that_was_applied():
    """It tells this stream from one written anew, in whatever order the entries arrived."""
    queued, claim, running = history("queued provisioning running")
    assert change(running, queued, claim).head == f"{FIRST_ARRIVAL_MS + 2}-0"
    assert change(row=at(Cursor(1, 2, Phase.RUNNING))).head == "1-0"


def test_the_claim_names_the_owner_and_a_new_attempt_has_none():
    """Ownership does not outlive its attempt."""
    assert change(*history("queued provisioning")).owner == "executor-1"
    lost = change(event("queued:lost", attempt=2), row=at(Cursor(1, 2, Phase.RUNNING)))
    assert lost.owner is None


# Endings.


@pytest.mark.parametrize("ending", ["completed", "failed", "timed_out"])
def test_an_end_has_its_time_and_its_scorecard(ending):
    """Completed, failed and timed out end the evaluation and count as such."""
    *_, end = events = history(f"queued provisioning running {ending}")
    ended = change(*events)
    assert ended.ended_at == end.occurred_at
    assert ended.scorecard
    assert (ended.scorecard.status, ended.scorecard.bridged) == (ending, False)
    assert getattr(ended.progress, ending) == 1


def test_a_cancelled_opening_ends_the_evaluation_at_once():
    """It opens an attempt and closes the evaluation, and is no retry."""
    ended = change(event("cancelled", attempt=2), row=at(Cursor(1, 2, Phase.RUNNING)))
    assert (ended.after, ended.progress.cancelled) == (Cursor(2, 0, Phase.CANCELLED), 1)
    assert ended.progress.retried == 0
    assert ended.scorecard
    assert ended.ended_at


def test_retrying_closes_the_attempt_and_not_the_evaluation():
    """There is no scorecard and no end."""
    closed = change(*history("queued provisioning retrying"))
    assert (closed.after.phase, closed.scorecard, closed.ended_at) == (Phase.RETRYING, None, None)


def test_each_attempt_queued_again_is_a_retry():
    """The first is not; an attempt opened only to end is not."""
    retried = change(
        *history("queued provisioning retrying"),
        *history("queued:retry provisioning retrying", attempt=2),
        *history("queued:lost", attempt=3),
        *history("timed_out", attempt=4),
    )
    assert (retried.progress.retried, retried.progress.timed_out) == (2, 1)


def test_an_attempt_that_continues_one_which_was_not_tried_is_no_retry():
    """Handed back, moved or never started: the opening is marked so, whatever its reason."""
    resumed = p.Queued(case=CASE, reason=p.OpeningReason.RETRY, resumed=True)
    continued = change(
        *history("queued provisioning retrying"), *history("queued", attempt=2, queued=resumed)
    )
    assert (continued.after.attempt, continued.progress.retried) == (2, 0)


# Reopened by an operator.


@pytest.mark.parametrize("ending", SETTLED)
def test_an_operator_takes_back_a_settled_end(ending):
    """The counter goes down again, the scorecard goes, and the evaluation is open."""
    reopened = change(event("queued:operator", attempt=2), row=at(Cursor(1, 3, SETTLED[ending])))
    assert (reopened.reopened, reopened.scorecard, reopened.ended_at) == (True, None, None)
    assert (getattr(reopened.progress, ending), reopened.progress.retried) == (-1, 1)


def test_an_end_and_its_reopening_in_one_look_leave_no_trace_but_the_retry():
    """Whoever sees both at once counts what two looks would have counted."""
    both = change(*history("queued failed"), event("queued:operator", attempt=2))
    assert (both.reopened, both.scorecard, both.ended_at) == (True, None, None)
    assert (both.progress.failed, both.progress.retried) == (0, 1)


def test_reopened_and_ended_again_in_one_look_has_the_new_scorecard():
    """The old scorecard is replaced, not added to."""
    events = history("queued:operator provisioning running completed", attempt=2)
    again = change(*events, row=at(Cursor(1, 1, Phase.FAILED)))
    assert again.scorecard
    assert (again.scorecard.attempt, again.scorecard.status) == (2, "completed")
    assert (again.progress.failed, again.progress.completed) == (-1, 1)


# Bridges and what stands beside the path.


def test_a_bridged_end_says_so_everywhere():
    """The row, the scorecard and the batch all know that something was missing."""
    queued, *_, completed = history("queued provisioning running completed")
    bridged = change(queued, completed, bridge_until_ms=AT_ONCE)
    assert [(b.attempt, b.missing) for b in bridged.bridges] == [(1, (range(1, 3),))]
    assert (bridged.bridged, bridged.progress.bridged, bridged.owner) == (True, 1, None)
    assert bridged.scorecard
    assert bridged.scorecard.bridged is True


def test_a_new_attempt_is_not_bridged_because_an_older_one_was():
    """The flag is about the attempt that counts; the batch goes on counting the bridge."""
    queued, _, retrying = history("queued provisioning retrying")
    events = [queued, retrying, *history("queued:retry provisioning running completed", attempt=2)]
    first = change(queued, retrying, bridge_until_ms=AT_ONCE)
    assert (first.bridged, first.progress.bridged) == (True, 1)
    second = change(*events[2:], row=at(first.after, bridged=True))
    assert (second.bridged, second.progress.bridged) == (False, 0)
    assert second.scorecard
    assert second.scorecard.bridged is False


def test_what_is_stale_or_late_stands_aside():
    """It is stored with its verdict, and the row stays where it is."""
    aside = change(*history("running", first=2), row=at(Cursor(2, 0, Phase.QUEUED)))
    assert [(e.verdict, e.sequence) for e in aside.side_events] == [("stale", 2)]
    assert (aside.moves, aside.is_empty, aside.events) == (False, False, [])


def test_an_illegal_event_is_stored_as_rejected_and_quarantined():
    """It moves the place in the attempt but neither phase nor owner, and its reason can be read."""
    walked = change(*history("queued provisioning completed running"))
    assert [e.verdict for e in walked.events] == ["applied", "applied", "rejected", "applied"]
    assert [(bad.reason, bad.detail) for bad in walked.quarantined] == [
        ("illegal", "provisioning does not accept completed at sequence 2")
    ]
    assert (walked.after, walked.scorecard) == (Cursor(1, 3, Phase.RUNNING), None)


# Quarantine ids.


def test_the_same_thing_has_the_same_id_wherever_it_arrived():
    """An id is made of the evaluation, the reason and the bytes: seeing it again adds nothing."""
    first = quarantine_row(
        "e", RejectedEntry(b"1-0", QuarantineReason.GARBAGE, "one way to say it", b"body")
    )
    again = quarantine_row("e", RejectedEntry(b"2-0", QuarantineReason.GARBAGE, "another", b"body"))
    assert first.id == again.id
    assert len(first.id) == 32


def test_ids_are_stable_across_releases():
    """A changed digest would list everything in quarantine twice."""
    kept = quarantine_row("e", RejectedEntry(b"1-0", QuarantineReason.GARBAGE, "", b"body"))
    assert kept.id == "dd8f9a3b3a90d0856985ab361e28355c"


@pytest.mark.parametrize(
    ("evaluation_id", "reason", "body"),
    [
        ("f", QuarantineReason.GARBAGE, b"body"),
        (None, QuarantineReason.GARBAGE, b"body"),
        ("e", QuarantineReason.CONFLICT, b"body"),
        ("e", QuarantineReason.GARBAGE, b"bodY"),
    ],
)
def test_another_thing_has_another_id(evaluation_id, reason, body):
    """Each part of the name tells things apart."""
    known = quarantine_row("e", RejectedEntry(b"1-0", QuarantineReason.GARBAGE, "", b"body"))
    assert quarantine_row(evaluation_id, RejectedEntry(b"1-0", reason, "", body)).id != known.id


def test_a_detail_is_fit_for_the_database():
    """NULs, which Postgres can't hold in text, are replaced; the body stays as it came."""
    kept = quarantine_row("e", RejectedEntry(b"1-0", QuarantineReason.GARBAGE, "a\0b", b"a\0b"))
    assert (kept.detail, kept.body) == ("a\N{REPLACEMENT CHARACTER}b", b"a\0b")


def test_side_spending_is_kept_apart_by_key():
    """Only whoever really inserts a side event may count what it cost."""
    responded = p.Responded(output="4", usage=p.TokenUsage(input_tokens=7), cost_usd=0.5)
    aside = change(event(responded, sequence=3), row=at(Cursor(2, 0, Phase.QUEUED)))
    assert aside.progress.tokens == 0
    assert {key: spent.tokens for key, spent in aside.side_progress.items()} == {(1, 3): 7}
