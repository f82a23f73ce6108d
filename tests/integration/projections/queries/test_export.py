"""Streams of whole batches: in dataset order, some evaluations only, or two batches side by side."""

import pytest

from projections.queries import export
from projections.queries.export import compared_pairs, ending_counts, export_rows
from tests.integration.scoreline.batch_harness import Harness


async def test_rows_are_in_dataset_order_beyond_one_fetch(
    here: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cursor is read in pieces, and no row is lost between them."""
    monkeypatch.setattr(export, "ROWS_AT_A_TIME", 2)
    await here.submit("nightly", ["passed", "queued", "dead", "failed", "retried"])
    async with here.place.conn.transaction():
        rows = [row async for row in export_rows(here.place.conn, "nightly")]
    assert [row.case_id for row in rows] == [f"case-{number}" for number in range(1, 6)]
    assert [row.verdict for row in rows] == ["passed", None, None, "failed", "passed"]
    assert [row.attempts for row in rows] == [1, 1, 1, 1, 2]
    assert (rows[1].output, rows[1].ended_at) == (None, None)


@pytest.mark.parametrize(
    ("only", "expected"), [(["nightly.00000002"], ["2"]), ([], []), (None, ["1", "2"])]
)
async def test_only_the_chosen_evaluations_are_streamed(
    here: Harness, only: list[str] | None, expected: list[str]
) -> None:
    """An empty choice is none, and no choice is all."""
    await here.submit("nightly", ["passed", "passed"])
    async with here.place.conn.transaction():
        rows = [row async for row in export_rows(here.place.conn, "nightly", only=only)]
    assert [row.evaluation_id[-1] for row in rows] == expected


async def test_endings_are_counted_by_status_and_verdict(here: Harness) -> None:
    """Evaluations that have not ended are open."""
    await here.submit("nightly", ["passed", "passed", "failed", "dead", "queued"])
    counts = await ending_counts(here.place.conn, "nightly")
    assert {status: count for (status, _), count in counts.items() if status != "completed"} == {
        "failed": 1,
        "open": 1,
    }
    assert (counts["completed", "passed"], counts["completed", "failed"]) == (2, 1)


async def test_a_case_that_one_batch_lacks_has_one_side(here: Harness) -> None:
    """Cases correspond by their id."""
    await here.submit("old", ["passed", "failed"])
    await here.submit("new", ["failed", "passed", "dead"])
    async with here.place.conn.transaction():
        found = [pair async for pair in compared_pairs(here.place.conn, "old", "new", variants=[(0, 0)])]
    outcomes = {pair.case_id: (pair.left_outcome, pair.right_outcome) for pair in found}
    assert outcomes == {
        "case-1": ("passed", "failed"),
        "case-2": ("failed", "passed"),
        "case-3": (None, "dead_letter"),
    }
    [lacking] = [pair for pair in found if pair.case_id == "case-3"]
    assert (lacking.left_id, lacking.right_id) == (None, "new.00000003")
