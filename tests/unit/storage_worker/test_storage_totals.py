"""Totals of a batch while its events arrive."""

from tests.builders import BATCH, history
from tests.storage_world import World


async def test_progress_and_totals_stay_consistent_whatever_the_order():
    """Ends come in any order: at each moment the parts sum up to the total, and to all in the end."""
    world = World()
    ids = [f"{BATCH}.{number:08}" for number in range(1, 7)]
    words = ["completed", "failed", "timed_out", "completed", "failed", "completed"]
    for key in ids:
        world.xadd(*history("queued provisioning running", evaluation_id=key))
    storage = world.storage()
    await storage.store(ids)
    for number in (5, 0, 3, 1, 4, 2):
        story = f"queued provisioning running {words[number]}"
        world.xadd(history(story, evaluation_id=ids[number])[-1])
        await storage.process([ids[number]])
        assert totals(world)[0] == 6
    assert totals(world) == (6, 3, 2, 1)


def totals(world: World) -> tuple[int, int, int, int]:
    """Sum up the counters of all shards: of all, and of those that completed, failed and timed out."""
    parts = list(world.tables.progress.values())
    return (
        sum(each.total for each in parts),
        sum(each.completed for each in parts),
        sum(each.failed for each in parts),
        sum(each.timed_out for each in parts),
    )
