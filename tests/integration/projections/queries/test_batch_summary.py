"""Aggregates of one batch."""

from datetime import timedelta

import pytest

from projections.database.errors import UnknownBatch
from projections.queries import batch_summary as queries
from tests.integration.scoreline.batch_harness import Harness


async def test_a_summary_counts_states_attempts_and_their_executors(here: Harness) -> None:
    """An attempt that no event closes is lost or running."""
    await here.submit("nightly", ["passed", "retried", "dead", "queued+provisioning"])
    summary = await queries.batch_summary(here.place.conn, "nightly")
    assert summary.states == {"completed": 2, "failed": 1, "provisioning": 1}
    assert summary.retries == {"retry": 1}
    assert (summary.span.events, summary.span.attempts) == (21, 5)
    assert summary.verdicts == {"applied": 21}
    assert (summary.reordered, summary.quarantined) == ((0, 0), {})
    [share] = summary.executors
    assert (share.attempts, share.completed, share.retried, share.failed, share.unclosed) == (5, 2, 1, 1, 1)
    assert summary.slowest[0].evaluation_id == "nightly.00000002"
    assert summary.progress is not None
    assert (summary.progress.total, summary.progress.completed) == (4, 2)


async def test_a_batch_without_events_has_no_length(here: Harness) -> None:
    """It is known, unlike one that was never submitted."""
    await here.submit("empty", [])
    summary = await queries.batch_summary(here.place.conn, "empty")
    assert (summary.span.length, summary.span.events) == (timedelta(), 0)
    with pytest.raises(UnknownBatch, match="There is no batch 'other'"):
        await queries.batch_summary(here.place.conn, "other")


async def test_unfinished_evaluations_are_listed_up_to_a_limit(here: Harness) -> None:
    """Each has its cursor, and the reasons of its quarantined entries."""
    await here.submit("nightly", ["queued", "passed", "queued+provisioning", "queued"])
    await here.place.conn.execute(
        "INSERT INTO quarantine (id, reason, detail, entry_id, evaluation_id, body)"
        " VALUES ('1', 'garbage', '', '1-0', 'nightly.00000003', '')"
    )
    found = await queries.batch_unfinished(here.place.conn, "nightly", limit=2)
    assert [(one.evaluation_id[-1], one.sequence, one.state, one.quarantined) for one in found] == [
        ("1", 0, "queued", None),
        ("3", 1, "provisioning", "garbage"),
    ]


async def test_neighbours_of_an_unknown_id_are_on_both_sides(here: Harness) -> None:
    """A misspelt id leads to the ids next to it."""
    for name in ("a", "m", "z"):
        await here.submit(name, [])
    near = await queries.nearby_batches(here.place.conn, "n", limit=1)
    assert sorted(near) == ["m", "z"]
