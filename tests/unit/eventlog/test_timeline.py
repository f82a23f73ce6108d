"""How a jumbled stream becomes a story again, case by case."""

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
    """The usual case: every event is the next one."""
    walked = walk(*history(STRAIGHT))
    assert applied_keys(walked) == [(1, n) for n in range(6)]
    assert [step.phase for step in walked.steps] == [
        "queued", "provisioning", "running", "responded", "responded", "completed",
    ]  # fmt: skip
    assert walked.cursor == Cursor(1, 5, Phase.COMPLETED)


def test_a_reversed_history_is_applied_in_order():
    """Arrival does not matter within an attempt, sequences do."""
    walked = walk(*reversed(history(STRAIGHT)))
    assert applied_keys(walked) == [(1, n) for n in range(6)]
    assert walked.cursor == Cursor(1, 5, Phase.COMPLETED)
    assert walked.gap is None


def test_reading_nothing_changes_nothing():
    """An idle look leaves the cursor where it was."""
    cursor = Cursor(3, 2, Phase.RUNNING)
    assert replay(cursor, []) == ReplayResult(cursor)


def test_a_duplicate_is_counted_and_applied_once():
    """The same key with the same body is the same event."""
    queued, *rest = history("queued provisioning")
    walked = walk(queued, queued, *rest, queued)
    assert (walked.duplicates, walked.conflicts) == (2, [])
    assert applied_keys(walked) == [(1, 0), (1, 1)]


def test_a_duplicate_in_other_words_is_still_a_duplicate():
    """Spaces in the JSON do not make another event of it."""
    first, again = arrive(history("queued") * 2)
    spaced = again._replace(body=again.body.replace(b":", b": "))
    walked = replay(UNREAD, [first, spaced])
    assert (walked.duplicates, walked.conflicts) == (1, [])


def test_a_conflict_never_overwrites_what_came_first():
    """The same key with another body is set aside; the first to arrive is the event."""
    rival = event(p.Provisioning(executor="executor-2", nonce="nonce-2"), sequence=1)
    walked = walk(*history("queued provisioning"), rival, *history("running", first=2))
    assert [entry.event for entry in walked.conflicts] == [rival]
    assert walked.steps[1].entry.event.data == p.Provisioning(executor="executor-1", nonce="nonce-1")
    assert walked.cursor == Cursor(1, 2, Phase.RUNNING)


def test_what_lies_beyond_a_hole_waits():
    """Only the contiguous prefix is applied, and the gap says what is missing and since when."""
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


def test_a_higher_opening_fences_what_had_not_been_reached():
    """What the old attempt had not got to by then is stale, and so is all it says afterwards."""
    queued, claim, running, *_, completed = history(STRAIGHT)
    fence = event("queued:lost", attempt=2)
    walked = walk(queued, claim, completed, fence, running, *history("provisioning", attempt=2, first=1))
    assert verdicts(walked) == {
        (1, 0): APPLIED, (1, 1): APPLIED, (2, 0): APPLIED, (2, 1): APPLIED, (1, 2): STALE, (1, 5): STALE,
    }  # fmt: skip
    assert walked.cursor == Cursor(2, 1, Phase.PROVISIONING)


def test_an_attempt_that_ended_before_the_fence_refuses_it():
    """Completed is final, even for a reader that sees the ending and the fence at once."""
    walked = walk(*history(STRAIGHT), *history("queued:lost provisioning", attempt=2))
    assert walked.cursor == Cursor(1, 5, Phase.COMPLETED)
    assert verdicts(walked)[2, 0] is REJECTED
    assert verdicts(walked)[2, 1] is REJECTED


def test_a_refused_opening_takes_its_whole_attempt_along():
    """After a settled end only an operator's attempt counts; a retry's events are rejected, not waiting."""
    walked = walk(
        *history("queued failed"),
        *history("queued:retry provisioning running", attempt=2),
        *history("queued:operator provisioning", attempt=3),
    )
    assert walked.cursor == Cursor(3, 1, Phase.PROVISIONING)
    assert [verdicts(walked)[2, n] for n in range(3)] == [REJECTED] * 3


def test_an_opening_of_the_wrong_type_takes_its_whole_attempt_along():
    """Nothing of an attempt that began with an impossible event is applied, nor bridged to."""
    odd = [event("running", attempt=2), *history("provisioning running completed", attempt=2, first=1)]
    walked = walk(*history("queued provisioning"), *odd, bridge_until_ms=FOREVER)
    assert walked.cursor == Cursor(1, 1, Phase.PROVISIONING)
    assert [verdicts(walked)[2, n] for n in range(4)] == [REJECTED] * 4
    assert (walked.gap, walked.bridges) == (None, [])


@pytest.mark.parametrize("twice", [False, True])
def test_an_attempt_opens_by_sequence_0_on_the_short_way_too(twice):
    """The fast path for events in order reads as the general one does."""
    odd = [event("provisioning"), event("timed_out", sequence=1)]
    walked = walk(*odd, *(odd if twice else ()))
    assert walked.cursor == UNREAD
    assert verdicts(walked) == {(1, 0): REJECTED, (1, 1): REJECTED}


def test_an_illegal_event_is_passed_over():
    """`provisioning → completed` is rejected, and what follows it is not lost."""
    walked = walk(*history("queued provisioning completed running completed"))
    assert [step.disposition for step in walked.steps] == [APPLIED, APPLIED, REJECTED, APPLIED, APPLIED]
    assert "provisioning does not accept completed" in walked.steps[2].detail
    assert walked.cursor == Cursor(1, 4, Phase.COMPLETED)


def test_what_lies_beyond_the_closing_event_is_rejected():
    """A closed attempt says nothing more, with or without a hole before it says so."""
    *_, running, completed = history("queued provisioning running completed")
    walked = walk(*history("queued provisioning running completed running"), event("scored", sequence=9))
    assert verdicts(walked)[1, 4] is verdicts(walked)[1, 9] is REJECTED
    assert walked.cursor == Cursor(1, 3, Phase.COMPLETED)
    assert (running.sequence, completed.sequence) == (2, 3)


def test_events_of_an_attempt_whose_opening_is_missing_wait_for_it():
    """Without sequence 0 a higher attempt has not begun, and its events are neither stale nor wrong."""
    walked = walk(*history("queued provisioning"), *history("provisioning running", attempt=2, first=1))
    assert walked.cursor == Cursor(1, 1, Phase.PROVISIONING)
    assert walked.gap
    assert (walked.gap.attempt, walked.gap.missing) == (2, (range(1),))
    later = walk(*history("queued:lost provisioning running", attempt=2), cursor=walked.cursor)
    assert later.cursor == Cursor(2, 2, Phase.RUNNING)


def test_a_ripe_gap_is_bridged_to_the_closing_event():
    """The hole is named, the closing event applied, and what waited between them is late."""
    queued, _, running, *_, completed = history(STRAIGHT)
    beyond = event("scored", sequence=7)
    walked = walk(queued, beyond, running, completed, bridge_until_ms=FIRST_ARRIVAL_MS + 1)
    (bridge,) = walked.bridges
    assert (bridge.attempt, bridge.missing) == (1, (range(1, 2), range(3, 5)))
    assert bridge.closing.event == completed
    assert verdicts(walked) == {(1, 0): APPLIED, (1, 5): APPLIED, (1, 2): LATE, (1, 7): REJECTED}
    assert walked.cursor == Cursor(1, 5, Phase.COMPLETED)
    assert walked.gap is None


def test_the_late_original_is_kept_as_late():
    """An event that arrives after its place was bridged changes nothing."""
    cursor = Cursor(1, 5, Phase.COMPLETED)
    walked = walk(event("provisioning", sequence=1), cursor=cursor)
    assert verdicts(walked) == {(1, 1): LATE}
    assert walked.cursor == cursor


def test_a_gap_is_not_bridged_before_its_time():
    """The oldest entry beyond the hole must have arrived by the given time."""
    queued, *_, completed = history(STRAIGHT)
    walked = walk(queued, completed, bridge_until_ms=FIRST_ARRIVAL_MS)
    assert walked.bridges == []
    assert walked.gap


def test_a_gap_without_a_closing_event_is_never_bridged():
    """The owner may still be at work: nothing is stepped over until it has closed its attempt."""
    queued, _, running, *_ = history(STRAIGHT)
    walked = walk(queued, running, bridge_until_ms=FOREVER)
    assert walked.bridges == []
    assert walked.gap
    assert walked.gap.closing is None


def test_two_attempts_with_holes_are_bridged_one_after_the_other():
    """Bridging to `retrying` lets the next attempt be bridged too."""
    queued, *_, retrying = history("queued provisioning retrying")
    *_, completed = history("queued provisioning running completed", attempt=2)
    walked = walk(queued, retrying, completed, bridge_until_ms=FOREVER)
    assert [(bridge.attempt, bridge.missing) for bridge in walked.bridges] == [
        (1, (range(1, 2),)),
        (2, (range(3),)),
    ]
    assert walked.cursor == Cursor(2, 3, Phase.COMPLETED)


def test_holes_are_named_as_stretches():
    """Before, between, never after."""
    assert missing_ranges(0, [0, 1, 2]) == ()
    assert missing_ranges(1, [3, 4, 7]) == (range(1, 3), range(5, 7))
    assert missing_ranges(5, []) == ()


def test_the_first_readable_entry_of_a_key_is_the_event():
    """One rule for storage worker, coordinator and executor; repetitions keep their order of arrival."""
    first, other, second = event("queued"), event("queued:retry"), event("running", sequence=2)
    entries = arrive([first, other, second, first])
    repeated: list[Entry] = []
    assert first_of_each_key(entries, repeated) == {(1, 0): entries[0], (1, 2): entries[2]}
    assert repeated == [entries[1], entries[3]]
    assert first_of_each_key(readable_entries(EVALUATION, [(b"1-0", [b"event", b"{"])])) == {}
