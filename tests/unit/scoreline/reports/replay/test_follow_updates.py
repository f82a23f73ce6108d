"""Updates of a followed history."""

from scoreline.reports.replay.follow_updates import UpdateTracker
from tests.builders import history
from tests.replaying import Scene


async def test_updates_have_each_entry_once_and_again_after_a_wait():
    """An entry that waits is reported, then its new disposition; none is reported twice."""
    scene, tracker = Scene(), UpdateTracker()
    queued, claim, running = history("queued provisioning running")
    scene.arrive(queued, running)
    first = [update.json["kind"] for update in tracker.updates(scene.replayed())]
    assert first == ["entry", "entry", "gap"]
    assert list(tracker.updates(scene.replayed())) == []
    scene.arrive(claim)
    await scene.store()
    updates = list(tracker.updates(scene.replayed()))
    assert [(each.json["sequence"], each.json["verdict"]) for each in updates] == [
        (2, "applied"),
        (1, "applied"),
    ]
    assert "had waited" in updates[0].text
