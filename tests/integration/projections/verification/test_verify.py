"""Verification of the tables against the log: every altered row is reported, and a rebuild corrects it."""

from collections.abc import Sequence
from random import Random

import pytest

from eventlog.timeline import Disposition
from projections.database.connection import make_pool
from projections.database.errors import UnknownBatch
from projections.folds.change import Change
from projections.store.contract import CommitResult
from projections.store.postgres import PostgresStore
from projections.verification.rebuild import BrokenLog
from storage_worker.storage import Storage
from tests.builders import BATCH, history
from tests.integration.place import Place, life
from tests.storage_world import GAP_POLICY, store_badly


async def test_tables_equal_the_log_with_events_of_every_disposition(here: Place) -> None:
    """Reordered, bridged, stale, late, rejected: verification and a rebuild find nothing to change."""
    random = Random(11)
    for _ in range(6):
        await store_badly(random, here.world, here.worker, most=40)
    verdicts = {verdict for (verdict,) in await here.ask("SELECT DISTINCT verdict FROM events")}
    assert verdicts == {verdict.value for verdict in Disposition}
    before = await here.dump()
    verified = await here.verify()
    assert verified.differences == []
    counted = await here.ask("SELECT (SELECT count(*) FROM evaluations), (SELECT count(*) FROM events)")
    assert [(verified.evaluations, verified.events)] == counted
    rebuilt = await here.rebuild()
    assert (rebuilt.evaluation_rows, rebuilt.scorecard_rows, rebuilt.counter_rows) == (0, 0, 0)
    assert rebuilt.quarantine_rows == 0
    assert await here.dump() == before


ALTERATIONS = {
    "a scorecard's score": (
        "UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'evaluation-2'",
        "scorecards evaluation-2 score: is 0.5, should be 1.0",
    ),
    "a scorecard's verdict": (
        "UPDATE scorecards SET verdict = 'failed' WHERE evaluation_id = 'evaluation-2'",
        "scorecards evaluation-2 verdict: is failed, should be passed",
    ),
    "a scorecard gone": (
        "DELETE FROM scorecards WHERE evaluation_id = 'evaluation-2'",
        "scorecards evaluation-2: is no such row, should be 1, completed, passed",
    ),
    "a counter": (
        "UPDATE batch_progress SET passed = passed + 3 WHERE ctid = (SELECT min(ctid) FROM batch_progress)",
        "passed: is",
    ),
    "a shard's counters gone": (
        "DELETE FROM batch_progress WHERE ctid = (SELECT min(ctid) FROM batch_progress)",
        "total: is 0, should be",
    ),
    "an evaluation's state": (
        "UPDATE evaluations SET state = 'running' WHERE evaluation_id = 'evaluation-3'",
        "evaluations evaluation-3 state: is running, should be completed",
    ),
    "an evaluation's place": (
        "UPDATE evaluations SET sequence = 2 WHERE evaluation_id = 'evaluation-3'",
        "evaluations evaluation-3 sequence: is 2, should be 4",
    ),
    "an evaluation reopened": (
        "UPDATE evaluations SET ended_at = NULL WHERE evaluation_id = 'evaluation-3'",
        "evaluations evaluation-3 ended_at: is nothing, should be 2026",
    ),
    "an evaluation gone": (
        "DELETE FROM evaluations WHERE evaluation_id = 'evaluation-3'",
        "evaluations evaluation-3: is no such row, should be",
    ),
    "an evaluation taken by another batch": (
        "UPDATE evaluations SET batch_id = 'other' WHERE evaluation_id = 'evaluation-3'",
        "evaluations evaluation-3 batch_id: is other, should be batch-1",
    ),
    "a rejected event off the list": (
        "DELETE FROM quarantine WHERE evaluation_id = 'illegal'",
        "no such row, should be illegal",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ALTERATIONS)
async def test_each_altered_row_is_reported_and_corrected(here: Place, name: str) -> None:
    """Verification reports the actual and the expected value, and a rebuild corrects the row."""
    statement, reported = ALTERATIONS[name]
    illegal = history("queued provisioning completed running failed", evaluation_id="illegal")
    await here.store(*map(life, range(6)), illegal)
    before = await here.dump()
    await here.alter(statement)
    differences = await here.differences()
    assert any(reported in str(difference) for difference in differences), [*map(str, differences)]
    await here.rebuild()
    assert await here.differences() == []
    assert await here.dump() == before


FORGERIES = {
    "an applied event is missing": (
        "DELETE FROM events WHERE evaluation_id = 'evaluation-1' AND sequence = 2",
        "1/3 responded was applied next after 1/1, and no bridge leads there",
    ),
    "an event's verdict": (
        "UPDATE events SET verdict = 'stale' WHERE evaluation_id = 'evaluation-1' AND sequence = 4",
        "1/4 is stale, but no attempt above 1 was opened",
    ),
    "an event's body": (
        ("UPDATE events SET event = replace(event::text, 'responded', 'completed')::json"
        " WHERE evaluation_id = 'evaluation-1' AND sequence = 3"),
        "1/3 can't be read",
    ),
    "an event's column": (
        "UPDATE events SET type = 'running' WHERE evaluation_id = 'evaluation-1' AND sequence = 1",
        "1/1 provisioning differs from its row: running but provisioning",
    ),
    "all events of an evaluation are gone": (
        "WITH gone AS (DELETE FROM events WHERE evaluation_id = 'evaluation-1') SELECT",
        "has results, but the log has none of its events",
    ),
    "an entry that is none": (
        "UPDATE events SET entry_id = 'garbage' WHERE evaluation_id = 'evaluation-1' AND sequence = 3",
        "1/3 arrived nowhere: its entry is 'garbage'",
    ),
    "a bridge from nowhere": (
        "INSERT INTO gap_bridges VALUES ('evaluation-1', 1, 9, '{[5,9)}')",
        "a bridge leads to 1/9, which was not applied",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_forged_log_is_reported_and_not_used_for_a_rebuild(here: Place, name: str) -> None:
    """If the log breaks a rule, verification names the rule, and a rebuild changes nothing."""
    statement, reported = FORGERIES[name]
    await here.store(*map(life, range(3)))
    await here.alter(statement)
    [first, *_] = await here.differences()
    assert first.where == "events evaluation-1"
    assert reported in first.found
    before = await here.dump()
    with pytest.raises(BrokenLog, match="nothing was changed"):
        await here.rebuild()
    assert await here.dump() == before


async def test_altered_bytes_in_quarantine_are_reported(here: Place) -> None:
    """The id of a quarantined entry is a digest of its content."""
    await here.store(history("queued provisioning completed", evaluation_id="illegal"))
    await here.alter("UPDATE quarantine SET body = 'something else'")
    [altered] = await here.differences()
    assert (altered.where[:18], altered.is_mendable) == ("quarantine illegal", False)
    assert "was altered" in altered.found


@pytest.mark.parametrize("ghost", ["scorecards", "evaluations"])
async def test_results_without_a_log_are_kept(here: Place, ghost: str) -> None:
    """The row may be forged or its events lost: it is reported and kept, and no rebuild runs."""
    await here.store(life(1))
    columns = await here.ask(
        "SELECT string_agg(attname, ', ') FROM pg_attribute"
        " WHERE attrelid = %s::regclass AND attnum > 1 AND NOT attisdropped", ghost
    )  # fmt: skip
    await here.alter(f"INSERT INTO {ghost} (evaluation_id, {columns[0][0]})"
                     f" SELECT 'ghost', {columns[0][0]} FROM {ghost}")  # fmt: skip
    [first, *_] = await here.differences()
    assert str(first) == "events ghost: has results, but the log has none of its events"
    before = await here.dump()
    with pytest.raises(BrokenLog, match="The log of ghost"):
        await here.rebuild()
    assert await here.dump() == before


async def test_a_batch_in_the_wrong_month_is_not_rebuilt(here: Place) -> None:
    """Its events would not be found, and a rebuild would delete all its results."""
    await here.store(life(1))
    await here.alter("UPDATE batches SET month = '2020-01-01'")
    [difference] = await here.differences()
    assert (difference.where, difference.found) == (f"batches {BATCH} month", "2020-01-01")
    before = await here.dump()
    with pytest.raises(BrokenLog, match="nothing was changed"):
        await here.rebuild()
    assert await here.dump() == before


async def test_an_evaluation_that_waits_for_its_opening_is_no_difference(here: Place) -> None:
    """It has a row, so that a sweep finds it, and no event in the log yet."""
    await here.store(history("provisioning running", evaluation_id="headless", first=1))
    verified = await here.verify()
    assert (verified.evaluations, verified.open, verified.events, verified.differences) == (1, 1, 0, [])
    await here.rebuild()
    assert await here.differences() == []


async def test_an_unknown_batch_is_an_error(here: Place) -> None:
    """There is nothing to verify."""
    with pytest.raises(UnknownBatch):
        await here.verify()
    with pytest.raises(UnknownBatch):
        await here.rebuild()


class Miscounting(PostgresStore):
    """A storage worker with a bug: it counts every commit twice."""

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        for change in changes:
            change.progress += change.progress
        return await super().commit(changes)


async def test_a_worker_that_counts_twice_is_reported(here: Place, postgres_url: str) -> None:
    """Verification counts again and does not use the stored counters."""
    async with make_pool(postgres_url, size=1) as pool:
        here.world.xadd(*life(1))
        await Storage(here.world.log, Miscounting(pool), GAP_POLICY).store(["evaluation-1"])
    assert "total" in {difference.column for difference in await here.differences()}
