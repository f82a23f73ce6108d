"""The order of entries by arrival and by sequence."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoreline.reports.replay.timeline_entry import (
    EntryDisposition,
    RejectedTimelineEntry,
    TimelineEntry,
    arrival_order,
    in_order,
    ranked,
)
from tests.builders import arrive, history


def entries(*arrivals: int) -> list[TimelineEntry]:
    """Return entries of these sequences with their ranks, in this order of arrival."""
    events = history("queued " + "running " * 9)
    lines = [TimelineEntry(each, EntryDisposition.APPLIED) for each in arrive(events[n] for n in arrivals)]
    return ranked(lines, [])[0]


@pytest.mark.parametrize(("entry_id", "order"), [(b"12-3", (12, 3)), (b"garbage", (0, 0)), (b"", (0, 0))])
def test_an_id_that_is_not_from_a_stream_sorts_first(entry_id: bytes, order: tuple[int, int]):
    """Ids are compared as numbers, not as text."""
    assert arrival_order(entry_id) == order


def test_ranks_count_decoded_and_rejected_entries_together():
    """An entry in both lists has one rank; milliseconds of different length sort as numbers."""
    [line] = arrive(history("queued"), first_ms=999)
    both = RejectedTimelineEntry("conflict", "", line.id, 1, b"")
    other = replace(both, entry_id=b"1000-0")
    lines, refusals = ranked([TimelineEntry(line, EntryDisposition.APPLIED)], [other, both])
    assert ([each.rank for each in lines], [each.rank for each in refusals]) == ([1], [2, 1])


def test_a_repeat_follows_its_original_and_has_no_times():
    """The time of the event after it is since the original."""
    first, again, second = entries(0, 0, 1)
    repeat = replace(again, disposition=EntryDisposition.DUPLICATE)
    ordered = in_order([repeat, second, first])
    assert [line.rank for line in ordered] == [1, 2, 3]
    assert [line.since for line in ordered] == [None, None, timedelta(seconds=1)]
    assert ordered[1].overtaken_by is None


@settings(deadline=None)
@given(st.permutations(range(7)))
def test_an_overtaken_entry_names_the_nearest_successor_that_arrived_before_it(arrivals: list[int]):
    """The single pass finds the same as a search over all successors."""
    rank = {sequence: place for place, sequence in enumerate(arrivals)}
    for line in in_order(entries(*arrivals)):
        mine = line.event.sequence
        before = [sequence for sequence in range(mine + 1, 7) if rank[sequence] < rank[mine]]
        assert line.overtaken_by == ((1, before[0]) if before else None)
