"""Events, dispositions and gaps as short texts."""

from datetime import UTC, datetime, timedelta

import pytest

from eventlog import payloads as p
from scoreline.reports.replay.event_text import bridged, describe, missing, place, ranges_text, verdict
from scoreline.reports.replay.gaps import Bridging, OpenGap
from scoreline.reports.replay.timeline_entry import EntryDisposition, TimelineEntry
from tests.builders import CASE, FAULT, START, arrive, event, history

ANSWER = p.Answer(output="4")
HANG = p.ErrorDetail(kind="hang")
BROKEN = f"transient: {FAULT.message}"
KEPT = p.Score(evaluator="exact", score=0.5, passed=False)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (p.Queued(case=CASE, answer=ANSWER, scores=(KEPT,)), 'case case-1 · answer known: "4" · 1 score'),
        (p.Responded(output="4", latency_ms=250, cached=True), '"4" · 250 ms · cached'),
        (p.Scored(evaluator="length", score=2.0), "length 2"),
        (p.Completed(verdict="failed", score=0.25, output="5"), 'failed · score 0.25 · "5"'),
        (
            p.Failed(error=FAULT, scores=(KEPT,)),
            f"{BROKEN} · scores kept: exact 0.5 failed",
        ),
        (
            p.TimedOut(limit="task", seconds=60.0, error=HANG),
            "task limit of 60 s · hang",
        ),
        (p.Cancelled(by="operator", reason="typo"), "by operator · typo"),
    ],
)
def test_the_summary_of_an_event_has_what_its_payload_has(data: p.AnyPayload, text: str):
    """Parts that are empty or zero are left out."""
    assert describe(event(data)) == text


@pytest.mark.parametrize(
    ("disposition", "pending", "text"),
    [
        (EntryDisposition.APPLIED, False, "applied"),
        (EntryDisposition.APPLIED, True, "not stored yet"),
        (EntryDisposition.LATE, True, "late, not stored yet"),
        (EntryDisposition.WAITING, True, "waiting"),
    ],
)
def test_an_entry_that_is_not_stored_is_marked_unless_it_waits(
    disposition: EntryDisposition, pending: bool, text: str
):
    """An entry beyond a gap is never stored before the gap closes, so that the mark adds nothing."""
    [entry] = arrive([event("queued")])
    assert verdict(TimelineEntry(entry, disposition, pending=pending)) == text


@pytest.mark.parametrize(
    ("successor", "text"), [(None, "4"), ((1, 7), "4, after seq 7"), ((2, 0), "4, after attempt 2")]
)
def test_the_rank_of_an_overtaken_entry_names_its_successor(successor: tuple[int, int] | None, text: str):
    """A successor of the same attempt is named by its sequence, another by its attempt."""
    [entry] = arrive([event("queued")])
    line = TimelineEntry(entry, EntryDisposition.APPLIED, rank=4, overtaken_by=successor)
    assert place(line) == text


def test_ranges_include_their_last_sequence():
    """A range of one is a single number."""
    assert ranges_text([range(2, 3), range(5, 9)]) == "2, 5-8"


def test_a_bridged_gap_distinguishes_late_sequences_from_those_that_never_arrived():
    """A bridge computed from the stream alone claims neither."""
    closing = event("completed", sequence=5)
    bridge = Bridging(1, (range(2, 5),), closing, START, timedelta(seconds=31), came_late=(3,))
    assert bridged(bridge, range(2, 5)) == (
        "2-4 had not arrived (3 came later); bridged 31.0 s later by 5 completed"
    )
    assert bridged(bridge, range(4, 5)) == "4 never arrived; bridged 31.0 s later by 5 completed"
    computed = Bridging(1, (range(2, 5),), closing, START, timedelta(seconds=31), worked_out=True)
    assert bridged(computed, range(2, 5)) == ("2-4 not here; bridged to 5 completed once 31.0 s had passed")


def test_an_open_gap_lists_the_first_five_waiting_events():
    """Without a clock of the log the age is left out."""
    waiting = tuple(history("running " * 7, first=2))
    gap = OpenGap(1, (range(1, 2),), datetime(2026, 1, 1, 9, tzinfo=UTC), waiting)
    listed = ", ".join(f"{sequence} running" for sequence in range(2, 7))
    assert missing(gap, range(1, 2), None) == (
        f"1 missing since 09:00:00.000; waiting: {listed} and 2 more"
    )
    aged = missing(gap, range(1, 2), gap.since + timedelta(seconds=3))
    assert aged.startswith("1 missing since 09:00:00.000, 3.0 s ago; waiting: ")
