"""Bridged and open gaps of a history."""

from datetime import timedelta

import pytest

from eventlog.timeline import Bridge, Gap
from projections.queries.evaluation_records import RecordedBridge
from scoreline.reports.replay.gaps import open_gap, recorded_bridgings, worked_out_bridgings
from scoreline.reports.replay.timeline_entry import EntryDisposition, TimelineEntry, arrival_time
from tests.builders import arrive, history

LIFE = "queued provisioning running responded scored completed"
TIMEOUT = timedelta(seconds=30)
GAP = (range(2, 4),)


def lines(*arrivals: int, disposition: EntryDisposition = EntryDisposition.APPLIED) -> list[TimelineEntry]:
    """Return entries of these sequences, which arrived in this order, a millisecond apart."""
    events = history(LIFE)
    return [TimelineEntry(entry, disposition) for entry in arrive(events[n] for n in arrivals)]


def test_the_wait_of_a_recorded_bridge_begins_with_the_first_entry_beyond_the_gap():
    """Sequence 4 arrived before 5, and late sequence 2 does not count."""
    entries = lines(0, 1, 4, 5, 2)
    since = entries[2].arrived_at
    [bridge] = recorded_bridgings(entries, [RecordedBridge(1, 5, GAP, since + timedelta(seconds=31))])
    assert (bridge.waited, bridge.came_late, bridge.worked_out) == (timedelta(seconds=31), (2,), False)
    assert bridge.closing_key == (1, 5)


def test_a_computed_bridge_is_due_after_the_gap_timeout():
    """It is marked as computed."""
    entries = lines(0, 1, 5, 4)
    [bridge] = worked_out_bridgings(entries, [Bridge(1, GAP, entries[2].entry)], TIMEOUT)
    assert (bridge.at, bridge.waited) == (entries[2].arrived_at + TIMEOUT, TIMEOUT)
    assert bridge.worked_out


@pytest.mark.parametrize("disposition", [EntryDisposition.DUPLICATE, EntryDisposition.CONFLICT])
def test_a_bridge_without_its_closing_entry_is_left_out(disposition: EntryDisposition):
    """A repeat of the closing entry does not stand for it."""
    made = [RecordedBridge(1, 5, GAP, arrival_time(b"1-0"))]
    assert recorded_bridgings(lines(0, 1), made) == []
    assert recorded_bridgings([*lines(0, 1), *lines(5, disposition=disposition)], made) == []


def test_an_open_gap_begins_with_its_oldest_waiting_entry():
    """Its events are in the order of the gap; without a gap there is none."""
    assert open_gap(None) is None
    events = history(LIFE)
    later, sooner = arrive([events[5]], first_ms=2_000), arrive([events[4]], first_ms=1_000)
    gap = open_gap(Gap(1, GAP, (*later, *sooner)))
    assert gap is not None
    assert gap.since == arrival_time(b"1000-0")
    assert [each.sequence for each in gap.waiting] == [5, 4]
