"""The change of the tables that follows from a replay of a stream."""

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


def test_the_first_pass_creates_the_row_and_counts_the_evaluation():
    """The change requires that no row exists, and adds one evaluation to the batch."""
    made = change(*history("queued provisioning running"))
    assert (made.before, made.after) == (None, Cursor(1, 2, Phase.RUNNING))
    assert (made.progress.total, made.owner, made.shard) == (1, "executor-1", 3)
    assert made.moves


def test_an_evaluation_without_applied_events_is_counted():
    """An evaluation that waits for its opening has a row, so that a sweep finds it."""
    made = change(*history("provisioning running", first=1))
    assert (made.before, made.after) == (None, Cursor())
    assert (made.progress.total, made.events, made.moves) == (1, [], True)


def test_a_later_pass_advances_the_row_by_the_new_events():
    """The change requires the cursor that was read, and counts no event twice."""
    known = at(Cursor(1, 1, Phase.PROVISIONING))
    moved = change(*history("running completed", first=2), row=known)
    assert (moved.before, moved.after) == (known.cursor, Cursor(1, 3, Phase.COMPLETED))
    assert (moved.progress.total, moved.progress.completed, moved.owner) == (0, 1, "executor-0")


def test_a_pass_without_new_events_changes_nothing():
    """The change is empty."""
    idle = change(row=at(Cursor(1, 1, Phase.PROVISIONING)))
    assert idle.is_empty
    assert not idle.moves


def test_an_event_is_stored_byte_for_byte_with_its_arrival():
    """The row of an event has its key, disposition, times and body."""
    queued = event("queued")
    (kept,) = change(queued).events
    assert kept[:6] == (MONTH, EVALUATION, 1, 0, "queued", "applied")
    assert kept[6:] == (queued.occurred_at, f"{FIRST_ARRIVAL_MS}-0", encode(queued))


def test_the_head_is_the_newest_applied_entry():
    """It distinguishes this stream from a rewritten one, in whatever order the entries arrived."""
    queued, claim, running = history("queued provisioning running")
    assert change(running, queued, claim).head == f"{FIRST_ARRIVAL_MS + 2}-0"
    assert change(row=at(Cursor(1, 2, Phase.RUNNING))).head == "1-0"


def test_a_claim_sets_the_owner_and_a_new_attempt_clears_it():
    """An owner is the owner of one attempt only."""
    assert change(*history("queued provisioning")).owner == "executor-1"
    lost = change(event("queued:lost", attempt=2), row=at(Cursor(1, 2, Phase.RUNNING)))
    assert lost.owner is None


# Ends.


@pytest.mark.parametrize("ending", ["completed", "failed", "timed_out"])
def test_an_ended_evaluation_has_an_end_time_and_a_scorecard(ending):
    """Completed, failed and timed out each end the evaluation and have a counter."""
    *_, end = events = history(f"queued provisioning running {ending}")
    ended = change(*events)
    assert ended.ended_at == end.occurred_at
    assert ended.scorecard
    assert (ended.scorecard.status, ended.scorecard.bridged) == (ending, False)
    assert getattr(ended.progress, ending) == 1


def test_a_cancelled_opening_ends_the_evaluation_at_once():
    """The event opens an attempt and ends the evaluation, and does not count as a retry."""
    ended = change(event("cancelled", attempt=2), row=at(Cursor(1, 2, Phase.RUNNING)))
    assert (ended.after, ended.progress.cancelled) == (Cursor(2, 0, Phase.CANCELLED), 1)
    assert ended.progress.retried == 0
    assert ended.scorecard
    assert ended.ended_at


def test_retrying_closes_the_attempt_but_not_the_evaluation():
    """There is no scorecard and no end time."""
    closed = change(*history("queued provisioning retrying"))
    assert (closed.after.phase, closed.scorecard, closed.ended_at) == (Phase.RETRYING, None, None)


def test_each_further_queued_attempt_is_a_retry():
    """The first attempt is none, and neither is one whose opening ends it."""
    retried = change(
        *history("queued provisioning retrying"),
        *history("queued:retry provisioning retrying", attempt=2),
        *history("queued:lost", attempt=3),
        *history("timed_out", attempt=4),
    )
    assert (retried.progress.retried, retried.progress.timed_out) == (2, 1)


def test_an_attempt_that_continues_an_unstarted_one_is_no_retry():
    """Its opening is marked as such, whatever its reason: handed back, moved or never started."""
    resumed = p.Queued(case=CASE, reason=p.OpeningReason.RETRY, resumed=True)
    continued = change(
        *history("queued provisioning retrying"), *history("queued", attempt=2, queued=resumed)
    )
    assert (continued.after.attempt, continued.progress.retried) == (2, 0)


# Reopened by an operator.


@pytest.mark.parametrize("ending", SETTLED)
def test_an_operator_reopens_a_settled_evaluation(ending):
    """Its counter is decremented, its scorecard removed, and the evaluation is open."""
    reopened = change(event("queued:operator", attempt=2), row=at(Cursor(1, 3, SETTLED[ending])))
    assert (reopened.reopened, reopened.scorecard, reopened.ended_at) == (True, None, None)
    assert (getattr(reopened.progress, ending), reopened.progress.retried) == (-1, 1)


def test_an_end_and_its_reopening_in_one_pass_only_count_the_retry():
    """One pass counts the same as two."""
    both = change(*history("queued failed"), event("queued:operator", attempt=2))
    assert (both.reopened, both.scorecard, both.ended_at) == (True, None, None)
    assert (both.progress.failed, both.progress.retried) == (0, 1)


def test_reopened_and_ended_in_one_pass_has_the_new_scorecard():
    """The old scorecard is replaced."""
    events = history("queued:operator provisioning running completed", attempt=2)
    again = change(*events, row=at(Cursor(1, 1, Phase.FAILED)))
    assert again.scorecard
    assert (again.scorecard.attempt, again.scorecard.status) == (2, "completed")
    assert (again.progress.failed, again.progress.completed) == (-1, 1)


# Bridges and side events.


def test_a_bridged_end_is_flagged_everywhere():
    """Row, scorecard and batch progress are flagged."""
    queued, *_, completed = history("queued provisioning running completed")
    bridged = change(queued, completed, bridge_until_ms=AT_ONCE)
    assert [(b.attempt, b.missing) for b in bridged.bridges] == [(1, (range(1, 3),))]
    assert (bridged.bridged, bridged.progress.bridged, bridged.owner) == (True, 1, None)
    assert bridged.scorecard
    assert bridged.scorecard.bridged is True


def test_a_new_attempt_is_not_flagged_for_the_bridge_of_an_older_one():
    """The flag belongs to the newest attempt; the batch still counts the bridge."""
    queued, _, retrying = history("queued provisioning retrying")
    events = [queued, retrying, *history("queued:retry provisioning running completed", attempt=2)]
    first = change(queued, retrying, bridge_until_ms=AT_ONCE)
    assert (first.bridged, first.progress.bridged) == (True, 1)
    second = change(*events[2:], row=at(first.after, bridged=True))
    assert (second.bridged, second.progress.bridged) == (False, 0)
    assert second.scorecard
    assert second.scorecard.bridged is False


def test_stale_and_late_events_do_not_move_the_row():
    """They are stored with their disposition."""
    aside = change(*history("running", first=2), row=at(Cursor(2, 0, Phase.QUEUED)))
    assert [(e.verdict, e.sequence) for e in aside.side_events] == [("stale", 2)]
    assert (aside.moves, aside.is_empty, aside.events) == (False, False, [])


def test_an_illegal_event_is_stored_as_rejected_and_quarantined():
    """It advances the sequence, but neither phase nor owner, and its reason is stored."""
    walked = change(*history("queued provisioning completed running"))
    assert [e.verdict for e in walked.events] == ["applied", "applied", "rejected", "applied"]
    assert [(bad.reason, bad.detail) for bad in walked.quarantined] == [
        ("illegal", "provisioning does not accept completed at sequence 2")
    ]
    assert (walked.after, walked.scorecard) == (Cursor(1, 3, Phase.RUNNING), None)


# Quarantine ids.


def test_an_entry_has_the_same_quarantine_id_wherever_it_arrived():
    """The id is a digest of evaluation, reason and bytes, so that a second copy adds nothing."""
    first = quarantine_row("e", RejectedEntry(b"1-0", QuarantineReason.GARBAGE, "one wording", b"body"))
    again = quarantine_row("e", RejectedEntry(b"2-0", QuarantineReason.GARBAGE, "another", b"body"))
    assert first.id == again.id
    assert len(first.id) == 32


def test_quarantine_ids_are_stable_across_releases():
    """A changed digest would list every quarantined entry twice."""
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
def test_another_entry_has_another_quarantine_id(evaluation_id, reason, body):
    """Evaluation, reason and bytes each change the id."""
    known = quarantine_row("e", RejectedEntry(b"1-0", QuarantineReason.GARBAGE, "", b"body"))
    assert quarantine_row(evaluation_id, RejectedEntry(b"1-0", reason, "", body)).id != known.id


def test_a_quarantine_detail_has_no_nul():
    """NULs, which Postgres cannot store in text, are replaced; the body is unchanged."""
    kept = quarantine_row("e", RejectedEntry(b"1-0", QuarantineReason.GARBAGE, "a\0b", b"a\0b"))
    assert (kept.detail, kept.body) == ("a\N{REPLACEMENT CHARACTER}b", b"a\0b")


def test_the_spend_of_side_events_is_listed_by_key():
    """Only the worker that inserts a side event counts its cost."""
    responded = p.Responded(output="4", usage=p.TokenUsage(input_tokens=7), cost_usd=0.5)
    aside = change(event(responded, sequence=3), row=at(Cursor(2, 0, Phase.QUEUED)))
    assert aside.progress.tokens == 0
    assert {key: spent.tokens for key, spent in aside.side_progress.items()} == {(1, 3): 7}
