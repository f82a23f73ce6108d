"""Lists and snapshots of batches, what waits in them, and their dead letters."""

import json
from datetime import timedelta

import pytest

from projections.database.errors import UnknownBatch
from projections.queries import batches as queries
from tests.builders import START
from tests.integration.scoreline.batch_harness import Harness


async def test_a_list_is_filtered_by_status_and_project(here: Harness) -> None:
    """A batch is completed only once it is finished; the newest is first."""
    for name, changes in {
        "open": "state = 'completed'",
        "over": "state = 'completed', finished_at = now()",
        "ads": "project = 'ads'",
    }.items():
        await here.submit(name, [])
        await here.change(name, changes)

    async def names(status: str | None = None, project: str | None = None, limit: int = 9) -> list[str]:
        found = await queries.list_batches(here.place.conn, status=status, project=project, limit=limit)
        return [one.batch_id for one in found]

    assert await names() == ["ads", "over", "open"]
    assert await names(limit=1) == ["ads"]
    assert await names("completed") == ["over"]
    assert await names("running") == ["ads", "open"]
    assert await names("running", "ads") == ["ads"]


async def test_a_snapshot_has_the_counters_of_its_moment(here: Harness) -> None:
    """Its duration ends with the batch; an unknown batch is an error."""
    await here.submit("nightly", ["passed", "dead", "queued"])
    await here.change("nightly", "finished_at = accepted_at + interval '90 seconds'")
    snapshot = await queries.read_snapshot(here.place.conn, "nightly")
    assert snapshot.duration == timedelta(seconds=90)
    progress = snapshot.progress
    assert (progress.total, progress.completed, progress.failed) == (3, 1, 1)
    with pytest.raises(UnknownBatch):
        await queries.read_snapshot(here.place.conn, "other")


async def test_waiting_evaluations_are_counted_by_state(here: Harness) -> None:
    """The most frequent state is first, and a retry has the time of the next one."""
    await here.submit("nightly", ["queued", "queued+provisioning+retrying", "queued", "passed"])
    queued, retrying = await queries.waiting(here.place.conn, "nightly")
    assert (queued.state, queued.count, queued.oldest, queued.next_retry) == (
        *("queued", 2, "nightly.00000001", None),
    )
    assert (retrying.state, retrying.count, retrying.next_retry) == (
        "retrying",
        1,
        START + timedelta(hours=1),
    )


async def test_results_of_variants_are_separate(here: Harness) -> None:
    """An open evaluation is in the total and in no other count."""
    await here.submit("nightly", ["passed", "failed", "dead", "queued"], variants=2)
    await here.place.alter("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'nightly.00000001'")
    first, second = await queries.variant_results(here.place.conn, "nightly")
    assert first == (0, 4, 3, 2, 1, 1, 0.25)
    assert second == (1, 4, 3, 2, 1, 1, 0.5)


async def test_dead_letters_have_their_case_and_error(here: Harness) -> None:
    """A time-out has no error, so its status is its kind."""
    await here.submit("nightly", ["dead", "passed", "timed_out"])
    dead = await queries.read_dead_letters(here.place.conn, "nightly", limit=9)
    assert sorted((one.case_id, one.status) for one in dead) == [
        ("case-1", "failed"),
        ("case-3", "timed_out"),
    ]
    [failed] = [one for one in dead if one.status == "failed"]
    assert json.loads(failed.error or "")["message"] == "no such model"
    assert len(await queries.read_dead_letters(here.place.conn, "nightly", limit=1)) == 1
    assert (await queries.dead_letter_kinds(here.place.conn, "nightly"))["permanent"] == 1
