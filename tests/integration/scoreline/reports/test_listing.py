"""`scoreline batch list` on real servers."""

from tests.integration.place import life
from tests.integration.scoreline.batch_harness import Harness
from tests.integration.scoreline.reports.batch_states import OVER


async def test_list_is_newest_first_and_can_be_filtered(here: Harness) -> None:
    """The list has status, progress and dead letters, also of external batches."""
    await here.submit("old", ["passed", "dead"])
    await here.change("old", f"{OVER}, accepted_at = now() - interval '2 hours', project = 'p'")
    await here.submit("new", ["queued"])
    await here.place.store(life(1))
    await here.change("batch-1", "accepted_at = now() - interval '1 hour'")
    found = await here.documents("list")
    assert [(each["batch_id"], each["status"]) for each in found] == [
        ("new", "running"), ("batch-1", "external"), ("old", "completed"),
    ]  # fmt: skip
    assert (found[2]["done"], found[2]["total"], found[2]["pass_rate"], found[2]["dead_letters"]) == (
        2,
        2,
        0.5,
        1,
    )
    assert [each["batch_id"] for each in await here.documents("list", "--status", "external")] == [
        "batch-1"
    ]
    assert [each["batch_id"] for each in await here.documents("list", "--project", "p")] == ["old"]
    assert len(await here.documents("list", "--limit", "1")) == 1
    text = (await here.run("list")).stdout
    assert text.index("new") < text.index("batch-1") < text.index("old")
    assert "2 h 0 min" in text
    assert (await here.run("list", "--status", "odd")).exit_code == 2
