"""All records of one evaluation, and the ids next to an unknown one."""

from projections.queries.evaluation_history import SHOWN_BYTES, is_batch, nearby_ids, read_history
from tests.integration.scoreline.batch_harness import Harness

KEY = "nightly.00000001"


async def test_an_unknown_evaluation_still_has_its_quarantined_entries(here: Harness) -> None:
    """A stream whose every entry was refused leads to no row; a long body is cut and its size kept."""
    body = b"x" * (SHOWN_BYTES + 1)
    await here.place.conn.execute(
        "INSERT INTO quarantine (id, reason, detail, entry_id, evaluation_id, body)"
        " VALUES ('1', 'garbage', 'no event', '7-0', 'refused', %s)",
        [body],
    )
    history = await read_history(here.place.conn, "refused")
    assert (history.evaluation, history.events, history.refused) == (None, (), 1)
    [refusal] = history.refusals
    assert (refusal.reason, refusal.body, refusal.size) == ("garbage", body[:SHOWN_BYTES], len(body))
    assert (await read_history(here.place.conn, "unknown")).refused == 0


async def test_a_history_has_its_events_in_order_and_its_scorecard(here: Harness) -> None:
    """Both attempts of a retried evaluation are there."""
    await here.submit("nightly", ["retried"])
    history = await read_history(here.place.conn, KEY)
    assert history.evaluation is not None
    assert (history.evaluation.cursor.attempt, history.evaluation.cursor.phase) == (2, "completed")
    keys = [recorded.entry.event.key for recorded in history.events]
    assert keys == [*((1, number) for number in range(5)), *((2, number) for number in range(5))]
    assert history.scorecard is not None
    assert history.scorecard.evaluation_id == KEY


async def test_a_stored_event_that_cannot_be_read_is_reported(here: Harness) -> None:
    """The other events are shown; one body that this release can't read fails no replay."""
    await here.submit("nightly", ["passed"])
    await here.place.alter("UPDATE events SET event = '{}' WHERE sequence = 2")
    history = await read_history(here.place.conn, KEY)
    assert [recorded.entry.event.sequence for recorded in history.events] == [0, 1, 3, 4]
    [refusal] = history.refusals
    assert (refusal.reason, refusal.body, history.refused) == ("unreadable", b"{}", 1)
    assert refusal.detail.startswith("stored, but ")


async def test_neighbours_lead_from_a_misspelt_id(here: Harness) -> None:
    """They are on both sides of each probe, each once; a batch's id is recognized."""
    await here.submit("nightly", ["queued"] * 3)
    near = await nearby_ids(here.place.conn, ["nightly.00000002x", "a"])
    assert sorted(near) == [f"nightly.0000000{number}" for number in (1, 2, 3)]
    assert await is_batch(here.place.conn, "nightly")
    assert not await is_batch(here.place.conn, KEY)
