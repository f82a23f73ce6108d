"""Sources of cases: files, imported datasets and made-up sums, each with rows and a place."""

from pathlib import Path

import pytest

from scoreline.command_error import CommandError
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.sources import (
    FileSource,
    ImportedSource,
    Source,
    SyntheticSource,
    place_of,
    source_rows,
)
from tests.unit.scoreline.submit.datasets.case_files import written


async def test_a_file_is_read_by_its_mapping(tmp_path: Path):
    """The columns of the source decide which field is the input."""
    path = written(tmp_path, "cases.jsonl", '{"q": "1 + 1", "input": "other"}\n')
    [row] = [row async for row in source_rows(FileSource(path, Columns(input="q")), postgres_url=None)]
    assert (row.case.id, row.case.input, row.line) == ("1", "1 + 1", 1)


async def test_made_up_cases_are_the_same_every_time():
    """Sums with their result, as many as wanted."""
    rows = [row async for row in source_rows(SyntheticSource(2), postgres_url=None)]
    assert [(row.case.id, row.case.input, row.case.expected) for row in rows] == [
        ("1", "What is 1 + 919?", "920"),
        ("2", "What is 2 + 838?", "840"),
    ]


async def test_an_imported_dataset_needs_a_database():
    """The error names the dataset."""
    with pytest.raises(CommandError, match="The dataset 'maths' is in the database"):
        _ = [row async for row in source_rows(ImportedSource("default", "maths"), postgres_url=None)]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (FileSource(Path("a.jsonl")), ("a.jsonl", "line")),
        (FileSource(Path("a.json")), ("a.json", "record")),
        (ImportedSource("default", "maths"), ("dataset 'maths'", "row")),
        (SyntheticSource(1), ("dataset 'synthetic'", "row")),
    ],
)
def test_a_position_is_counted_in_the_unit_of_its_source(source: Source, place: tuple[str, str]):
    """Errors name a line of a file, or a row of a dataset."""
    assert place_of(source) == place
