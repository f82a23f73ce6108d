"""Any stream replays to the same result for every reader, however it is split into reads."""

import hypothesis.strategies as st
from hypothesis import given, settings

from eventlog.codec import Entry
from eventlog.events import Event, EventKey
from eventlog.lifecycle import Phase
from eventlog.timeline import Disposition, ReplayResult, replay
from tests.builders import arrive, event, history
from tests.unit.eventlog.timeline_model import UNREAD, IncrementalReader, NaiveReader

FOREVER = 2**62


def verdicts(walked: ReplayResult) -> dict[EventKey, Disposition]:
    return {step.entry.key: step.disposition for step in walked.steps}


@given(st.data())
@settings(deadline=None)
def test_any_shuffle_with_duplicates_replays_to_the_same_result(data):
    """A complete attempt ends in the same state however its events are ordered and duplicated."""
    scores = " scored" * data.draw(st.integers(0, 3))
    events = history(f"queued provisioning running responded{scores} completed")
    repeated = events + data.draw(st.lists(st.sampled_from(events), max_size=5))
    walked = replay(UNREAD, arrive(data.draw(st.permutations(repeated))))
    straight = replay(UNREAD, arrive(events))
    assert walked.cursor == straight.cursor
    assert [(step.entry.event, step.disposition, step.phase) for step in walked.steps] == [
        (step.entry.event, step.disposition, step.phase) for step in straight.steps
    ]
    assert (walked.duplicates, walked.gap) == (len(repeated) - len(events), None)


WORDS = "provisioning running responded scored completed retrying failed timed_out queued cancelled"
OPENINGS = "queued queued:retry queued:operator cancelled timed_out running"


@st.composite
def streams(draw: st.DrawFn, *, attempts_open_in_turn: bool = False) -> list[Entry]:
    """Draw any stream: up to four attempts with gaps, duplicates and illegal events, in any order."""
    events: list[Event] = []
    for attempt in range(1, draw(st.integers(1, 4)) + 1):
        events.append(event(draw(st.sampled_from(OPENINGS.split())), attempt=attempt))
        plausible = history("provisioning running responded scored completed", attempt=attempt, first=1)
        if draw(st.booleans()):
            events += plausible[: draw(st.integers(0, 5))]
            events.append(event("retrying", attempt=attempt, sequence=events[-1].sequence + 1))
        else:
            words = draw(st.lists(st.sampled_from(WORDS.split()), max_size=6))
            events += history(" ".join(words), attempt=attempt, first=1)
    events += draw(st.lists(st.sampled_from(events), max_size=4))
    dropped = draw(st.sets(st.integers(0, len(events) - 1), max_size=3))
    kept = [each for at, each in enumerate(events) if at not in dropped]
    disordered = draw(st.permutations(kept)) if draw(st.booleans()) else kept
    return arrive(_with_openings_in_turn(disordered) if attempts_open_in_turn else disordered)


def _with_openings_in_turn(events: list[Event]) -> list[Event]:
    """Move the openings of lower attempts first, as the log guarantees; the rest keeps its order."""
    openings = iter(sorted((e for e in events if e.sequence == 0), key=lambda e: e.attempt))
    return [next(openings) if e.sequence == 0 else e for e in events]


@given(streams())
@settings(deadline=None)
def test_replay_agrees_with_the_naive_reader(stream):
    """`replay` gives every event of any stream the disposition that the naive reader gives it."""
    naive = NaiveReader().read(stream)
    walked = replay(UNREAD, stream)
    assert verdicts(walked) == naive.verdicts
    assert walked.cursor == (naive.attempt, naive.sequence, naive.phase)
    assert len(walked.steps) == len(naive.verdicts)


@given(streams(attempts_open_in_turn=True), st.data())
@settings(deadline=None)
def test_any_split_into_reads_gives_the_same_result(stream, data):
    """Successive reads of growing prefixes end with the dispositions and the cursor of a single read."""
    ends = data.draw(st.sets(st.integers(0, len(stream)), max_size=4))
    bridge_until_ms = data.draw(st.sampled_from([None, FOREVER]))
    at_once, split = IncrementalReader(), IncrementalReader()
    for end in sorted(ends):
        split.read(stream[:end])
    split.read(stream, bridge_until_ms=bridge_until_ms)
    at_once.read(stream, bridge_until_ms=bridge_until_ms)
    assert split.verdicts == at_once.verdicts
    assert split.applied == at_once.applied
    assert split.cursor == at_once.cursor


@given(streams())
@settings(deadline=None)
def test_every_event_has_a_disposition_or_waits(stream):
    """Every key of a stream has a disposition, or waits for an event that may still arrive."""
    walked = replay(UNREAD, stream)
    unjudged = {entry.key for entry in stream} - set(verdicts(walked))
    attempt, sequence, phase = walked.cursor
    assert all(key > (attempt, sequence) for key in unjudged)
    assert not unjudged or phase not in {Phase.COMPLETED, Phase.CANCELLED}
