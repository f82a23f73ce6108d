"""Datasets in the postgres_url, read page by page."""

import pytest

from projections.datasets.repository import UnknownDataset, stored_cases
from scoreline.command_error import CommandError
from scoreline.submit.datasets.dataset_import import import_file
from scoreline.submit.datasets.sources import FileSource
from tests.integration.scoreline.submit.datasets.dataset_files import ROWS, count, dataset
from tests.unit.scoreline.submit.submission_harness import wrote


async def test_a_name_is_taken_unless_it_is_replaced(tmp_path, postgres_url, conn):
    """An import never appends to a dataset: it is refused or replaces it; projects are separate."""
    source = FileSource(wrote(tmp_path, "cases.jsonl", ROWS))
    await import_file(postgres_url, source, dataset(), replace=False)
    with pytest.raises(CommandError, match="--replace"):
        await import_file(postgres_url, source, dataset(), replace=False)
    smaller = FileSource(wrote(tmp_path, "smaller.jsonl", ROWS[:1]))
    await import_file(postgres_url, smaller, dataset(), replace=True)
    assert await count(conn) == (1, 1)
    await import_file(postgres_url, source, dataset(project="other"), replace=False)
    assert await count(conn) == (2, 4)


async def test_a_long_dataset_is_read_page_by_page(tmp_path, postgres_url, conn):
    """Keyset pagination returns the cases in order, and a limit ends it."""
    rows = [{"input": n} for n in range(2_500)]
    await import_file(postgres_url, FileSource(wrote(tmp_path, "a.jsonl", rows)), dataset(), replace=False)
    cases = [case async for case in stored_cases(conn, project="default", name="maths")]
    assert [case.case.input for case in cases] == list(range(2_500))
    assert len([1 async for _ in stored_cases(conn, project="default", name="maths", limit=7)]) == 7
    with pytest.raises(UnknownDataset):
        _ = [1 async for _ in stored_cases(conn, project="default", name="physics")]
