"""The diff of one stream with its row: which entries are known, new, or must be compared with the table."""

from datetime import date

import pytest

from eventlog import payloads as p
from eventlog.codec import RawEntry, encode
from eventlog.events import Event, EventKey
from eventlog.lifecycle import OPENINGS, Phase
from eventlog.timeline import Cursor
from projections.folds.change import EvaluationRow, StoredEvent
from storage_worker import stream_diff
from storage_worker.stream_diff import Resolution, diff_stream, resolve
from tests.builders import BATCH, EVALUATION, FIRST_ARRIVAL_MS, event, history, raw_entry, wire

MONTH = date(2026, 1, 1)
CLAIMED = Cursor(1, 1, Phase.PROVISIONING)
AT_ONCE, NEVER = 2**62, 0


def row(cursor: Cursor = CLAIMED, *, head: str | None = "", bridged: bool = False) -> EvaluationRow:
    """Make a row whose head is by default the second entry of `wire`."""
    head = f"{FIRST_ARRIVAL_MS + 1}-0" if head == "" else head
    return EvaluationRow(EVALUATION, BATCH, MONTH, cursor, owner="executor-1", bridged=bridged, head=head)


def diff(
    raw: list[RawEntry], known: EvaluationRow | None, *stored: Event, bridge_until_ms: int = NEVER
) -> Resolution:
    """Diff a stream and resolve it, with these events in the tables."""
    held = {each.key: StoredEvent(encode(each), _verdict(each)) for each in stored}
    seen = diff_stream(EVALUATION, raw, known)
    return resolve(seen, shard=0, months={BATCH: MONTH}, stored=held, bridge_until_ms=bridge_until_ms)


def _verdict(stored: Event) -> str:
    opens_nothing = stored.sequence == 0 and stored.type not in OPENINGS
    return "rejected" if opens_nothing else "applied"


def verdicts(resolution: Resolution) -> dict[EventKey, str]:
    assert resolution.change
    rows = (*resolution.change.events, *resolution.change.side_events)
    return {(each.attempt, each.sequence): each.verdict for each in rows}


def quarantined(resolution: Resolution) -> list[tuple[str, bytes]]:
    assert resolution.change
    return [(bad.reason, bad.body) for bad in resolution.change.quarantined]


def rival(word: str, *, sequence: int) -> Event:
    return event(word, sequence=sequence, source="rival")


# Entries that the row covers.


def test_covered_entries_are_skipped_undecoded():
    """As long as the entry applied last has its place, the entries before it are not parsed."""
    garbage = [raw_entry(event("queued"), entry_id=b"1-0", event=b"garbage")]
    _, claim, running = wire(history("queued provisioning running"))
    seen = diff_stream(EVALUATION, [*garbage, claim, running], row())
    assert (seen.rejected, seen.needs_comparison) == ([], False)
    assert [entry.key for entry in seen.entries] == [(1, 2)]


def test_a_repeated_covered_entry_is_skipped():
    """A duplicate of a covered entry has no effect, wherever it is in the stream."""
    queued, claim, running = history("queued provisioning running")
    seen = diff_stream(EVALUATION, wire([queued, claim, queued, running, claim]), row())
    assert (seen.needs_comparison, [entry.key for entry in seen.entries]) == (False, [(1, 2)])


def test_two_bodies_for_one_key_in_one_read_are_a_conflict():
    """The first to arrive is the event; the other is quarantined in the same pass."""
    queued, claim = history("queued provisioning")
    other = rival("provisioning", sequence=1)
    resolution = diff(wire([queued, claim, other]), None)
    assert quarantined(resolution) == [("conflict", encode(other))]
    assert verdicts(resolution) == {(1, 0): "applied", (1, 1): "applied"}


def test_a_covered_event_with_another_body_is_a_conflict():
    """The rival is quarantined, and the row advances with the next event."""
    queued, claim, running = history("queued provisioning running")
    other = rival("provisioning", sequence=1)
    resolution = diff(wire([queued, claim, other, running]), row(), queued, claim)
    assert quarantined(resolution) == [("conflict", encode(other))]
    assert verdicts(resolution) == {(1, 2): "applied"}


def test_a_row_without_a_head_covers_its_opening():
    """The coordinator creates rows before their streams, so the opening is known without a head."""
    seen = diff_stream(
        EVALUATION, wire(history("queued provisioning")), row(Cursor(1, 0, Phase.QUEUED), head=None)
    )
    assert [entry.key for entry in seen.entries] == [(1, 1)]


def test_an_evaluation_without_a_row_is_read_whole():
    """The first read takes every entry, and the row is to be created."""
    resolution = diff(wire(history("queued provisioning")), None)
    assert resolution.change
    assert (resolution.change.before, resolution.change.after) == (None, CLAIMED)
    assert resolution.change.progress.total == 1


# A stream written again after data loss.


def test_a_rewritten_stream_is_compared_with_the_stored_events():
    """After data loss in Redis the head is gone: equal events are known, new ones are applied."""
    queued, claim, running = history("queued provisioning running")
    anew = wire([queued, claim, running], first_ms=FIRST_ARRIVAL_MS + 90_000)
    resolution = diff(anew, row(), queued, claim)
    assert verdicts(resolution) == {(1, 2): "applied"}
    assert quarantined(resolution) == []


def test_a_rewritten_stream_with_another_body_is_a_conflict():
    """The stored event is kept; another body after the loss is quarantined and overwrites nothing."""
    queued, claim, running = history("queued provisioning running")
    other = rival("provisioning", sequence=1)
    anew = wire([queued, other, running], first_ms=FIRST_ARRIVAL_MS + 90_000)
    resolution = diff(anew, row(), queued, claim)
    assert quarantined(resolution) == [("conflict", encode(other))]
    assert verdicts(resolution) == {(1, 2): "applied"}


def test_a_rival_of_an_event_that_the_stream_has_lost_is_a_conflict():
    """After a loss only the next event was re-appended; another event under an older key is compared."""
    queued, claim, running = history("queued provisioning running")
    later = row(Cursor(1, 2, Phase.RUNNING), head=f"{FIRST_ARRIVAL_MS + 90_000}-0")
    anew = wire([running, rival("provisioning", sequence=1)], first_ms=FIRST_ARRIVAL_MS + 90_000)
    assert [reason for reason, _ in quarantined(diff(anew, later, queued, claim, running))] == ["conflict"]


def test_a_stored_body_with_other_whitespace_is_no_conflict():
    """Whitespace in the JSON of a re-appended event does not make it another event."""
    queued, claim = history("queued provisioning")
    spaced = raw_entry(queued, entry_id=b"9-0", event=encode(queued).replace(b'":', b'": '))
    resolution = diff([spaced], row(), queued, claim)
    assert resolution.change
    assert resolution.change.is_empty


def test_a_rewritten_stream_with_only_new_events_is_not_compared():
    """Without covered entries there is nothing to compare."""
    anew = wire(history("running", first=2), first_ms=FIRST_ARRIVAL_MS + 90_000)
    seen = diff_stream(EVALUATION, anew, row())
    assert (seen.needs_comparison, [entry.key for entry in seen.entries]) == (False, [(1, 2)])


# Bridged rows, lower attempts, rejected openings.


@pytest.mark.parametrize(
    ("closing", "phase"), [("completed", Phase.COMPLETED), ("retrying", Phase.RETRYING)]
)
def test_the_missing_event_of_a_bridged_gap_is_late(closing, phase):
    """A bridged row covers sequences that never arrived: they are compared, and stored as late once."""
    queued, claim, running, end = history(f"queued provisioning running {closing}")
    bridged = row(Cursor(1, 3, phase), head=f"{FIRST_ARRIVAL_MS + 2}-0", bridged=True)
    raw = wire([queued, claim, end, running])
    assert verdicts(diff(raw, bridged, queued, claim, end)) == {(1, 2): "late"}
    again = diff(raw, bridged, queued, claim, end, running)
    assert again.change
    assert again.change.is_empty


@pytest.mark.parametrize("closing", ["completed", "retrying"])
def test_a_bridge_marks_the_row_so_that_late_events_are_compared(closing):
    """This also holds for a bridge to `retrying`, which does not end the evaluation."""
    queued, _, end = history(f"queued running {closing}")
    resolution = diff(wire([queued, end]), None, bridge_until_ms=AT_ONCE)
    assert resolution.change
    assert [bridge.missing for bridge in resolution.change.bridges] == [(range(1, 2),)]
    assert resolution.change.bridged is True


def test_an_event_of_a_lower_attempt_is_stale_once():
    """It is stored the first time; afterwards Postgres has it."""
    queued, claim, running = history("queued provisioning running")
    fence = event("queued:lost", attempt=2)
    raw = wire([queued, claim, fence, running])
    opened = row(Cursor(2, 0, Phase.QUEUED), head=f"{FIRST_ARRIVAL_MS + 2}-0")
    assert verdicts(diff(raw, opened, queued, claim, fence)) == {(1, 2): "stale"}
    again = diff(raw, opened, queued, claim, fence, running)
    assert again.change
    assert again.change.is_empty


def test_a_rejected_opening_stays_rejected_in_a_comparison():
    """A stored rejected opening does not open its attempt: all events after it are rejected."""
    queued, claim = history("queued provisioning")
    odd, *rest = [
        event("running", attempt=2),
        *history("provisioning running completed", attempt=2, first=1),
    ]
    raw = wire([queued, claim, rival("provisioning", sequence=1), odd, *rest])
    resolution = diff(raw, row(), queued, claim, odd, bridge_until_ms=AT_ONCE)
    assert resolution.change
    assert (resolution.change.moves, resolution.change.bridges) == (False, [])
    assert verdicts(resolution) == {(2, n): "rejected" for n in range(1, 4)}


# Entries that are no valid events.


def test_an_event_of_another_batch_is_quarantined():
    """An evaluation belongs to the batch of its row, or of its first readable event."""
    queued, claim = history("queued provisioning")
    foreign = event("running", sequence=2, batch_id="batch-2")
    for known in (None, row()):
        resolution = diff(wire([queued, claim, foreign]), known)
        assert quarantined(resolution) == [("mismatch", encode(foreign))]
        assert resolution.change
        assert resolution.change.after == CLAIMED


def test_an_overlong_stream_is_read_to_its_limit_and_reported_once(monkeypatch):
    """Entries beyond the limit are not read; the same entry carries the report at every read."""
    monkeypatch.setattr(stream_diff, "MAX_ENTRIES", 2)
    events = history("queued provisioning running completed")
    first, again = diff(wire(events[:3]), None), diff(wire(events), None)
    assert first.change
    assert again.change
    assert first.change.after == CLAIMED
    assert [bad.reason for bad in first.change.quarantined] == ["overlong"]
    assert [bad.id for bad in first.change.quarantined] == [bad.id for bad in again.change.quarantined]


def test_garbage_of_an_unknown_evaluation_is_an_orphan():
    """Without a readable event no row is created, and the bytes are quarantined with their reason."""
    resolution = diff([(b"1-0", [b"event", b"garbage"])], None)
    assert resolution.change is None
    assert [(bad.evaluation_id, bad.reason, bad.body) for bad in resolution.orphans] == [
        (EVALUATION, "garbage", b"garbage")
    ]


def test_garbage_beside_readable_events_affects_only_itself():
    """An invalid entry is quarantined, and its neighbours are applied."""
    queued, claim = wire(history("queued provisioning"))
    resolution = diff([queued, (b"5-0", [b"event", b"{"]), claim], None)
    assert quarantined(resolution) == [("garbage", b"{")]
    assert verdicts(resolution) == {(1, 0): "applied", (1, 1): "applied"}


def test_fields_in_an_unusual_order_take_the_slow_path():
    """The fast path knows one layout of fields; any other layout is decoded with the same result."""
    queued, claim, running = wire(history("queued provisioning running"))
    names, values = running[1][::2], running[1][1::2]
    shuffled = [part for pair in reversed(list(zip(names, values, strict=True))) for part in pair]
    seen = diff_stream(EVALUATION, [queued, claim, (running[0], shuffled)], row())
    assert [entry.key for entry in seen.entries] == [(1, 2)]


def test_a_known_event_with_fields_in_an_unusual_order_changes_nothing():
    """It may be decoded again at each read, but is neither applied nor stored twice."""
    queued, claim = history("queued provisioning")
    fields = [part for pair in ((b"event", encode(claim)), (b"type", b"provisioning")) for part in pair]
    odd = (b"%d-0" % (FIRST_ARRIVAL_MS + 1), [*fields, b"sequence", b"1", b"attempt", b"1"])
    resolution = diff([*wire([queued]), odd], row(), queued, claim)
    assert resolution.change
    assert resolution.change.is_empty


@pytest.mark.parametrize("sequence", [b"-1", b"+1", b" 1", b"01", b"1_0", b"9" * 5000, b"", b"one"])
def test_fields_that_are_no_plain_number_are_never_covered(sequence):
    """An entry whose envelope contradicts its fields is quarantined as a mismatch."""
    raw = [
        *wire(history("queued provisioning")),
        raw_entry(event("running", sequence=2), sequence=sequence),
    ]
    assert quarantined(diff(raw, row()))[0][0] == "mismatch"


def test_a_batch_is_named_by_the_first_readable_event():
    """The first readable event names the batch of an evaluation that was not submitted."""
    raw = [(b"1-0", [b"event", b"garbage"]), *wire([event(p.Queued(case=p.Case(id="c")), batch_id="mine")])]
    assert diff_stream(EVALUATION, raw, None).batch_id == "mine"
