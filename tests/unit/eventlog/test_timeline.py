"""Replaying a stream out of order, with duplicates, gaps and fences: case by case."""

import pytest

from eventlog import payloads as p
from eventlog.codec import Entry, readable_entries
from eventlog.events import Event
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor, Disposition, ReplayResult, first_of_each_key, missing_ranges, replay
from tests.builders import EVALUATION, FIRST_ARRIVAL_MS, arrive, event, history
from tests.unit.eventlog.timeline_model import UNREAD

APPLIED, STALE, LATE, REJECTED = (
    Disposition.APPLIED,
    Disposition.STALE,
    Disposition.LATE,
    Disposition.REJECTED,
)
STRAIGHT = "queued provisioning running responded scored completed"
FOREVER = 2**62


def verdicts(walked: ReplayResult) -> dict[tuple[int, int], Disposition]:
    return {step.entry.key: step.disposition for step in walked.steps}


def walk(*events: Event, cursor: Cursor = UNREAD, bridge_until_ms: int | None = None) -> ReplayResult:
    return replay(cursor, arrive(events), bridge_until_ms=bridge_until_ms)


def applied_keys(walked: ReplayResult) -> list[tuple[int, int]]:
    return [step.entry.key for step in walked.steps if step.disposition is APPLIED]


def test_a_history_in_order_is_applied_in_order():
    """Every event is the next one, and all are applied."""
    walked = walk(*history(STRAIGHT))
    assert applied_keys(walked) == [(1, n) for n in range(6)]
    assert [step.phase for step in walked.steps] == [
        "queued", "provisioning", "running", "responded", "responded", "completed",
    ]  # fmt: skip
    assert walked.cursor == Cursor(1, 5, Phase.COMPLETED)


def test_a_reversed_history_is_applied_in_order():
    """Within an attempt the sequences decide, not the order of arrival."""
    walked = walk(*reversed(history(STRAIGHT)))
    assert applied_keys(walked) == [(1, n) for n in range(6)]
    assert walked.cursor == Cursor(1, 5, Phase.COMPLETED)
    assert walked.gap is None


def test_reading_nothing_changes_nothing():
    """A replay without new entries leaves the cursor unchanged."""
    cursor = Cursor(3, 2, Phase.RUNNING)
    assert replay(cursor, []) == ReplayResult(cursor)


def test_a_duplicate_is_counted_and_applied_once():
    """The same key with the same body is the same event."""
    queued, *rest = history("queued provisioning")
    walked = walk(queued, queued, *rest, queued)
    assert (walked.duplicates, walked.conflicts) == (2, [])
    assert applied_keys(walked) == [(1, 0), (1, 1)]


def test_a_duplicate_with_other_whitespace_is_still_a_duplicate():
    """Whitespace in the JSON does not make it another event."""
    first, again = arrive(history("queued") * 2)
    spaced = again._replace(body=again.body.replace(b":", b": "))
    walked = replay(UNREAD, [first, spaced])
    assert (walked.duplicates, walked.conflicts) == (1, [])


def test_a_conflict_never_overwrites_the_first_event():
    """The same key with another body is a conflict, and the first entry to arrive is the event."""
    rival = event(p.Provisioning(executor="executor-2", nonce="nonce-2"), sequence=1)
    walked = walk(*history("queued provisioning"), rival, *history("running", first=2))
    assert [entry.event for entry in walked.conflicts] == [rival]
    assert walked.steps[1].entry.event.data == p.Provisioning(executor="executor-1", nonce="nonce-1")
    assert walked.cursor == Cursor(1, 2, Phase.RUNNING)


def test_events_beyond_a_gap_wait():
    """Only the contiguous prefix is applied, and the gap has the missing sequences and its start time."""
    queued, _, running, responded, _, completed = history(STRAIGHT)
    walked = walk(queued, completed, responded, running)
    assert walked.cursor == Cursor(1, 0, Phase.QUEUED)
    assert applied_keys(walked) == [(1, 0)]
    assert walked.gap
    assert walked.gap.missing == (range(1, 2), range(4, 5))
    assert [entry.event for entry in walked.gap.waiting] == [running, responded, completed]
    assert walked.gap.since_ms == FIRST_ARRIVAL_MS + 1
    assert walked.gap.closing
    assert walked.gap.closing.event == completed


def test_a_higher_opening_fences_events_that_were_not_applied():
    """Events of the lower attempt that were not applied by then, or arrive later, are stale."""
    queued, claim, running, *_, completed = history(STRAIGHT)
    fence = event("queued:lost", attempt=2)
    walked = walk(queued, claim, completed, fence, running, *history("provisioning", attempt=2, first=1))
    assert verdicts(walked) == {
        (1, 0): APPLIED, (1, 1): APPLIED, (2, 0): APPLIED, (2, 1): APPLIED, (1, 2): STALE, (1, 5): STALE,
    }  # fmt: skip
    assert walked.cursor == Cursor(2, 1, Phase.PROVISIONING)


def test_an_attempt_that_completed_before_the_fence_rejects_it():
    """Completed is final, even for a reader that gets the closing event and the opening in one read."""
    walked = walk(*history(STRAIGHT), *history("queued:lost provisioning", attempt=2))
    assert walked.cursor == Cursor(1, 5, Phase.COMPLETED)
    assert verdicts(walked)[2, 0] is REJECTED
    assert verdicts(walked)[2, 1] is REJECTED


def test_a_rejected_opening_rejects_its_whole_attempt():
    """After a settled end only an operator's opening is applied; events of a retry are rejected."""
    walked = walk(
        *history("queued failed"),
        *history("queued:retry provisioning running", attempt=2),
        *history("queued:operator provisioning", attempt=3),
    )
    assert walked.cursor == Cursor(3, 1, Phase.PROVISIONING)
    assert [verdicts(walked)[2, n] for n in range(3)] == [REJECTED] * 3


def test_an_opening_of_the_wrong_type_rejects_its_whole_attempt():
    """No event of an attempt with an illegal opening is applied, and no gap in it is bridged."""
    odd = [event("running", attempt=2), *history("provisioning running completed", attempt=2, first=1)]
    walked = walk(*history("queued provisioning"), *odd, bridge_until_ms=FOREVER)
    assert walked.cursor == Cursor(1, 1, Phase.PROVISIONING)
    assert [verdicts(walked)[2, n] for n in range(4)] == [REJECTED] * 4
    assert (walked.gap, walked.bridges) == (None, [])


@pytest.mark.parametrize("twice", [False, True])
def test_the_fast_path_opens_an_attempt_at_sequence_0(twice):
    """The fast path for events in order gives the same result as the general one."""
    odd = [event("provisioning"), event("timed_out", sequence=1)]
    walked = walk(*odd, *(odd if twice else ()))
    assert walked.cursor == UNREAD
    assert verdicts(walked) == {(1, 0): REJECTED, (1, 1): REJECTED}


def test_an_illegal_event_is_rejected_and_skipped():
    """`provisioning → completed` is rejected, and the events after it are applied."""
    walked = walk(*history("queued provisioning completed running completed"))
    assert [step.disposition for step in walked.steps] == [APPLIED, APPLIED, REJECTED, APPLIED, APPLIED]
    assert "provisioning does not accept completed" in walked.steps[2].detail
    assert walked.cursor == Cursor(1, 4, Phase.COMPLETED)


def test_events_after_the_closing_event_are_rejected():
    """A closed attempt accepts no event, with or without a gap before its closing event."""
    *_, running, completed = history("queued provisioning running completed")
    walked = walk(*history("queued provisioning running completed running"), event("scored", sequence=9))
    assert verdicts(walked)[1, 4] is verdicts(walked)[1, 9] is REJECTED
    assert walked.cursor == Cursor(1, 3, Phase.COMPLETED)
    assert (running.sequence, completed.sequence) == (2, 3)


def test_events_of_an_attempt_without_an_opening_wait():
    """Without sequence 0 a higher attempt is not open, and its events are neither stale nor rejected."""
    walked = walk(*history("queued provisioning"), *history("provisioning running", attempt=2, first=1))
    assert walked.cursor == Cursor(1, 1, Phase.PROVISIONING)
    assert walked.gap
    assert (walked.gap.attempt, walked.gap.missing) == (2, (range(1),))
    later = walk(*history("queued:lost provisioning running", attempt=2), cursor=walked.cursor)
    assert later.cursor == Cursor(2, 2, Phase.RUNNING)


def test_a_gap_past_its_time_out_is_bridged_to_the_closing_event():
    """The missing sequences are recorded, the closing event is applied, and events between are late."""
    queued, _, running, *_, completed = history(STRAIGHT)
    beyond = event("scored", sequence=7)
    walked = walk(queued, beyond, running, completed, bridge_until_ms=FIRST_ARRIVAL_MS + 1)
    (bridge,) = walked.bridges
    assert (bridge.attempt, bridge.missing) == (1, (range(1, 2), range(3, 5)))
    assert bridge.closing.event == completed
    assert verdicts(walked) == {(1, 0): APPLIED, (1, 5): APPLIED, (1, 2): LATE, (1, 7): REJECTED}
    assert walked.cursor == Cursor(1, 5, Phase.COMPLETED)
    assert walked.gap is None


def test_an_event_that_arrives_after_its_gap_was_bridged_is_late():
    """The late event is recorded and changes nothing."""
    cursor = Cursor(1, 5, Phase.COMPLETED)
    walked = walk(event("provisioning", sequence=1), cursor=cursor)
    assert verdicts(walked) == {(1, 1): LATE}
    assert walked.cursor == cursor


def test_a_gap_is_not_bridged_before_its_time_out():
    """The oldest entry beyond the gap must have arrived by the given time."""
    queued, *_, completed = history(STRAIGHT)
    walked = walk(queued, completed, bridge_until_ms=FIRST_ARRIVAL_MS)
    assert walked.bridges == []
    assert walked.gap


def test_a_gap_without_a_closing_event_is_never_bridged():
    """The owner may still be running, so nothing is skipped until it has closed its attempt."""
    queued, _, running, *_ = history(STRAIGHT)
    walked = walk(queued, running, bridge_until_ms=FOREVER)
    assert walked.bridges == []
    assert walked.gap
    assert walked.gap.closing is None


def test_gaps_in_two_attempts_are_bridged_one_after_the_other():
    """Bridging to `retrying` allows the next attempt to be bridged too."""
    queued, *_, retrying = history("queued provisioning retrying")
    *_, completed = history("queued provisioning running completed", attempt=2)
    walked = walk(queued, retrying, completed, bridge_until_ms=FOREVER)
    assert [(bridge.attempt, bridge.missing) for bridge in walked.bridges] == [
        (1, (range(1, 2),)),
        (2, (range(3),)),
    ]
    assert walked.cursor == Cursor(2, 3, Phase.COMPLETED)


def test_missing_sequences_are_listed_as_ranges():
    """Ranges before and between the present sequences are listed, and none after the last."""
    assert missing_ranges(0, [0, 1, 2]) == ()
    assert missing_ranges(1, [3, 4, 7]) == (range(1, 3), range(5, 7))
    assert missing_ranges(5, []) == ()


def test_the_first_readable_entry_of_a_key_is_the_event():
    """Storage worker, coordinator and executor share this rule; duplicates keep their arrival order."""
    first, other, second = event("queued"), event("queued:retry"), event("running", sequence=2)
    entries = arrive([first, other, second, first])
    repeated: list[Entry] = []
    assert first_of_each_key(entries, repeated) == {(1, 0): entries[0], (1, 2): entries[2]}
    assert repeated == [entries[1], entries[3]]
    assert first_of_each_key(readable_entries(EVALUATION, [(b"1-0", [b"event", b"{"])])) == {}
