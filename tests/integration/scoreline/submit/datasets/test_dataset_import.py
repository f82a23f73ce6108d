"""Imported datasets: whole or not at all, and read back as they were."""

import pytest

from projections.datasets.repository import list_datasets
from scoreline.command_error import CommandError
from scoreline.submit.datasets.dataset_import import import_file
from scoreline.submit.datasets.errors import RowError
from scoreline.submit.datasets.rows import file_rows
from scoreline.submit.datasets.sources import FileSource, ImportedSource, source_rows
from scoreline.submit.evaluations import evaluations
from scoreline.submit.spec.builder import make_plan
from tests.integration.scoreline.submit.datasets.dataset_files import ROWS, count, dataset
from tests.unit.scoreline.submit.submission_harness import wrote


async def test_an_imported_dataset_is_read_back_unchanged(tmp_path, postgres_url, conn):
    """A dataset in the database gives the same rows as its file."""
    source = FileSource(wrote(tmp_path, "cases.jsonl", ROWS))
    assert await import_file(postgres_url, source, dataset(), replace=False) == 3
    imported = ImportedSource("default", "maths")
    back = [row async for row in source_rows(imported, postgres_url=postgres_url)]
    assert [(row.case, row.tags, row.position) for row in back] == [
        (row.case, row.tags, row.position) for row in file_rows(source.path)
    ]
    (about,) = await list_datasets(conn, project="default")
    assert (about.name, about.cases, about.tags, about.source) == ("maths", 3, ["nightly"], "cases.jsonl")


async def test_a_bad_row_leaves_nothing_behind(tmp_path, postgres_url, conn):
    """An import is all or nothing, also where it replaces a dataset."""
    good = FileSource(wrote(tmp_path, "good.jsonl", ROWS))
    bad = FileSource(wrote(tmp_path, "bad.jsonl", [*({"input": n} for n in range(5_000)), {"id": ""}]))
    with pytest.raises(RowError, match="line 5001: the id is empty"):
        await import_file(postgres_url, bad, dataset(), replace=False)
    assert await count(conn) == (0, 0)
    await import_file(postgres_url, good, dataset(), replace=False)
    with pytest.raises(RowError):
        await import_file(postgres_url, bad, dataset(), replace=True)
    assert await count(conn) == (1, 3)


async def test_an_imported_dataset_is_submitted_by_its_name(tmp_path, postgres_url):
    """Serial groups and errors are those of a file; a row is named by its position."""
    source = FileSource(wrote(tmp_path, "cases.jsonl", ROWS))
    await import_file(postgres_url, source, dataset(), replace=False)
    plan = make_plan(None, {"dataset": "maths", "target": "simulated"}, folder=tmp_path)
    made = [each async for each in evaluations(plan, postgres_url=postgres_url)]
    assert [each.serial and each.serial.follows for each in made] == [None, None, 2]
    plan = make_plan(
        None, {"dataset": "maths", "target": "simulated", "evaluator": "exact"}, folder=tmp_path
    )
    with pytest.raises(RowError, match="dataset 'maths', row 2: there is no expected value"):
        _ = [each async for each in evaluations(plan, postgres_url=postgres_url)]
    plan = make_plan(None, {"dataset": "physics", "target": "simulated"}, folder=tmp_path)
    with pytest.raises(CommandError, match="scoreline dataset list"):
        _ = [each async for each in evaluations(plan, postgres_url=postgres_url)]
