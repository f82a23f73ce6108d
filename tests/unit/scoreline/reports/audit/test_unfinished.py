"""Reasons why an evaluation has not ended."""

from scoreline.reports.audit.unfinished import reason
from tests.builders import event, history
from tests.replaying import Scene


async def test_a_gap_is_reported_with_its_missing_sequences():
    """The entry that waits beyond the gap is not counted as an event that is not stored."""
    scene = Scene()
    events = history("queued provisioning running responded")
    scene.arrive(events[0], events[3])
    await scene.store()
    assert reason(scene.replayed()).startswith("1-2 missing since ")
    assert reason(scene.replayed()).endswith("; waiting: 3 responded")


async def test_several_reasons_are_listed_together():
    """A quarantine reason that occurs twice is listed once."""
    scene = Scene()
    scene.arrive(event("queued"))
    scene.arrive_garbage(b"event", b"{")
    scene.arrive_garbage(b"event", b"[")
    await scene.store()
    scene.arrive(event("provisioning", sequence=1))
    assert reason(scene.replayed()) == "1 event not stored yet; in quarantine: garbage"


async def test_work_in_progress_is_reported_with_the_newest_arrival():
    """The newest event is the last that arrived, not the one of the highest sequence."""
    scene = Scene()
    queued, claim, running = history("queued provisioning running")
    scene.arrive(queued, running, claim)
    await scene.store()
    scene.wait(seconds=5)
    assert reason(scene.replayed()) == "in progress; last event 5.0 s ago: provisioning from test"


def test_an_evaluation_without_events_is_reported_as_such():
    """A row without a log is an error of its own, not work in progress."""
    assert reason(Scene().replayed()) == "neither Redis nor the log has an event of it"
