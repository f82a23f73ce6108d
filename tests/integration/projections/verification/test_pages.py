"""Pages of a batch: every evaluation once, strays last, and all rows of each."""

import gc

import pytest
from psycopg.types.multirange import Multirange
from psycopg.types.range import Range

from projections.database.errors import UnknownBatch
from projections.verification.pages import (
    page_ids,
    ranges,
    rare_garbage_collection,
    read_batch,
    read_page,
    read_progress,
)
from tests.builders import BATCH
from tests.integration.place import Place, life


async def test_an_unknown_batch_is_an_error(here: Place) -> None:
    """It has no log to verify."""
    with pytest.raises(UnknownBatch, match="'nightly'"):
        await read_batch(here.conn, "nightly")


async def test_pages_hold_each_evaluation_once_and_strays_last(here: Place) -> None:
    """An evaluation without a row, whose events name the batch, is a stray."""
    await here.store(*map(life, range(1, 6)))
    await here.alter("DELETE FROM evaluations WHERE evaluation_id = 'evaluation-1'")
    batch = await read_batch(here.conn, BATCH)
    pages = [[key[-1] for key in ids] async for ids in page_ids(here.conn, batch, size=2)]
    assert pages == [["2", "3"], ["4", "5"], ["1"]]


async def test_a_page_has_all_rows_of_its_evaluations(here: Place) -> None:
    """Those of other evaluations are not read; one without a bridge has no gaps."""
    await here.store(life(1), life(2))
    batch = await read_batch(here.conn, BATCH)
    page = await read_page(here.conn, batch.month, ["evaluation-2", "unknown"])
    assert (set(page.evaluations), set(page.scorecards)) == ({"evaluation-2"}, {"evaluation-2"})
    assert {key: len(rows) for key, rows in page.events.items()} == {"evaluation-2": 5}
    assert page.bridged_gaps_of("evaluation-2") == {}
    progress = await read_progress(here.conn, BATCH)
    assert sum(each.completed for each in progress.values()) == 2


def test_missing_sequences_become_ranges() -> None:
    """The upper bound is exclusive, as in PostgreSQL."""
    assert ranges(Multirange([Range(2, 4), Range(7, 8)])) == (range(2, 4), range(7, 8))
    assert ranges(Multirange()) == ()


def test_the_threshold_of_the_garbage_collector_is_restored() -> None:
    """It is higher only while pages are read."""
    before = gc.get_threshold()
    with rare_garbage_collection():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before
