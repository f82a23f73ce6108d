"""Imported datasets: whole or not at all, and read back as they were."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection
from typer.testing import CliRunner, Result

from eventlog.keys import DEFAULT_SHARDS
from projections.database.readiness import prepare
from projections.datasets.repository import NewDataset, UnknownDataset, list_datasets, stored_cases
from scoreline.cli.dataset import app
from scoreline.command_error import CommandError
from scoreline.submit.datasets.dataset_import import import_file
from scoreline.submit.datasets.errors import RowError
from scoreline.submit.datasets.rows import file_rows
from scoreline.submit.datasets.sources import FileSource, ImportedSource, source_rows
from scoreline.submit.evaluations import evaluations
from scoreline.submit.spec.builder import make_plan
from tests.unit.scoreline.submit.submission_harness import wrote

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "x\0", "answer": ["1", None], "tags": ["t"], "level": 1.5},
    {"id": "b", "question": {"deep": [1]}, "store_output_as": "it"},
    {"id": "c", "question": "what of {it}?\\ \t\n"},
]


@pytest.fixture
async def database(postgres_url: str) -> str:
    await prepare(postgres_url, shards=DEFAULT_SHARDS)
    return postgres_url


@pytest.fixture
async def conn(database: str) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        yield connection


def dataset(name: str = "maths", project: str = "default") -> NewDataset:
    return NewDataset(name, project, "cases.jsonl", ("nightly",))


async def count(conn: AsyncConnection[Any]) -> tuple[int, int]:
    """How many datasets and cases there are."""
    query = "SELECT (SELECT count(*) FROM datasets), (SELECT count(*) FROM test_cases)"
    row = await (await conn.execute(query)).fetchone()
    assert row
    return row[0], row[1]


async def test_an_imported_dataset_is_read_back_unchanged(tmp_path, database, conn):
    """A dataset in the database gives the same rows as its file."""
    source = FileSource(wrote(tmp_path, "cases.jsonl", ROWS))
    assert await import_file(database, source, dataset(), replace=False) == 3
    imported = ImportedSource("default", "maths")
    back = [row async for row in source_rows(imported, postgres_url=database)]
    assert [(row.case, row.tags, row.position) for row in back] == [
        (row.case, row.tags, row.position) for row in file_rows(source.path)
    ]
    (about,) = await list_datasets(conn, project="default")
    assert (about.name, about.cases, about.tags, about.source) == ("maths", 3, ["nightly"], "cases.jsonl")


async def test_a_bad_row_leaves_nothing_behind(tmp_path, database, conn):
    """An import is all or nothing, also where it replaces a dataset."""
    good = FileSource(wrote(tmp_path, "good.jsonl", ROWS))
    bad = FileSource(wrote(tmp_path, "bad.jsonl", [*({"input": n} for n in range(5_000)), {"id": ""}]))
    with pytest.raises(RowError, match="line 5001: the id is empty"):
        await import_file(database, bad, dataset(), replace=False)
    assert await count(conn) == (0, 0)
    await import_file(database, good, dataset(), replace=False)
    with pytest.raises(RowError):
        await import_file(database, bad, dataset(), replace=True)
    assert await count(conn) == (1, 3)


async def test_a_name_is_taken_unless_it_is_replaced(tmp_path, database, conn):
    """An import never appends to a dataset: it is refused or replaces it; projects are separate."""
    source = FileSource(wrote(tmp_path, "cases.jsonl", ROWS))
    await import_file(database, source, dataset(), replace=False)
    with pytest.raises(CommandError, match="--replace"):
        await import_file(database, source, dataset(), replace=False)
    smaller = FileSource(wrote(tmp_path, "smaller.jsonl", ROWS[:1]))
    await import_file(database, smaller, dataset(), replace=True)
    assert await count(conn) == (1, 1)
    await import_file(database, source, dataset(project="other"), replace=False)
    assert await count(conn) == (2, 4)


async def test_a_long_dataset_is_read_page_by_page(tmp_path, database, conn):
    """Keyset pagination returns the cases in order, and a limit ends it."""
    rows = [{"input": n} for n in range(2_500)]
    await import_file(database, FileSource(wrote(tmp_path, "a.jsonl", rows)), dataset(), replace=False)
    cases = [case async for case in stored_cases(conn, project="default", name="maths")]
    assert [case.case.input for case in cases] == list(range(2_500))
    assert len([1 async for _ in stored_cases(conn, project="default", name="maths", limit=7)]) == 7
    with pytest.raises(UnknownDataset):
        _ = [1 async for _ in stored_cases(conn, project="default", name="physics")]


async def test_an_imported_dataset_is_submitted_by_its_name(tmp_path, database):
    """Serial groups and errors are those of a file; a row is named by its position."""
    source = FileSource(wrote(tmp_path, "cases.jsonl", ROWS))
    await import_file(database, source, dataset(), replace=False)
    plan = make_plan(None, {"dataset": "maths", "target": "simulated"}, folder=tmp_path)
    made = [each async for each in evaluations(plan, postgres_url=database)]
    assert [each.serial and each.serial.follows for each in made] == [None, None, 2]
    plan = make_plan(
        None, {"dataset": "maths", "target": "simulated", "evaluator": "exact"}, folder=tmp_path
    )
    with pytest.raises(RowError, match="dataset 'maths', row 2: there is no expected value"):
        _ = [each async for each in evaluations(plan, postgres_url=database)]
    plan = make_plan(None, {"dataset": "physics", "target": "simulated"}, folder=tmp_path)
    with pytest.raises(CommandError, match="scoreline dataset list"):
        _ = [each async for each in evaluations(plan, postgres_url=database)]


def run(database: str, *arguments: str) -> Result:
    urls = {"EVAL_REDIS_URL": "redis://127.0.0.1:1/0", "EVAL_POSTGRES_URL": database}
    return CliRunner().invoke(app, arguments, env=urls)


def imported(database: str, path: Path, *arguments: str) -> dict[str, Any]:
    result = run(database, "import", str(path), "--json", *arguments)
    assert result.exit_code == 0, result.output
    about: dict[str, Any] = json.loads(result.stdout)
    return about


def test_a_file_is_imported_listed_and_shown(tmp_path, database):
    """The three commands work for people and, with JSON, for machines."""
    rows = [{"key": f"k{n}", "q": f"What is {n}?", "a": n} for n in range(12)]
    path = tmp_path / "sums.json"
    path.write_text(json.dumps({"data": {"rows": rows}}))
    columns = ["--records", "data.rows", "--id", "key", "--input", "q", "--expected", "a"]
    about = imported(database, path, *columns, "--tag", "small")
    assert (about["name"], about["cases"]) == ("sums", 12)

    (listed,) = run(database, "list", "--json").stdout.splitlines()
    about = json.loads(listed)
    assert about.pop("imported_at")
    assert about == {
        "name": "sums",
        "project": "default",
        "cases": 12,
        "tags": ["small"],
        "source": "sums.json",
    }
    shown = json.loads(run(database, "show", "sums", "--limit", "2", "--json").stdout)
    assert [(case["id"], case["input"], case["expected"]) for case in shown["first"]] == [
        ("k0", "What is 0?", 0),
        ("k1", "What is 1?", 1),
    ]
    assert "What is 11?" not in run(database, "show", "sums").stdout
    assert "sums" in run(database, "list").stdout
    assert run(database, "list", "--project", "other", "--json").stdout == ""


def test_the_commands_explain_what_they_refuse(tmp_path, database):
    """A taken name, an invalid file and a missing dataset have one sentence each."""
    path = wrote(tmp_path, "cases.jsonl", ROWS)
    imported(database, path)
    for arguments, message in [
        (["import", str(path)], "--replace"),
        (["import", str(tmp_path / "cases.txt")], "unknown suffix"),
        (["import", str(tmp_path / "nowhere.csv")], "No such file"),
        (["show", "physics"], "has no dataset 'physics'"),
    ]:
        result = run(database, *arguments)
        assert isinstance(result.exception, CommandError), result
        assert message in str(result.exception)
    assert imported(database, path, "--replace", "--name", "other")["name"] == "other"


@pytest.mark.parametrize("name", ["exams/2026", "cases.jsonl", "cases.csv.gz"])
def test_a_name_that_a_batch_would_take_for_a_file_is_refused(tmp_path, database, name):
    """`--dataset` would take such a name for a file."""
    result = run(database, "import", str(wrote(tmp_path, "cases.jsonl", ROWS)), "--name", name)
    assert (result.exit_code, "a batch would look for a file" in _plain(result.stderr)) == (2, True)
    assert run(database, "list", "--json").stdout == ""


def test_one_case_is_one_case(tmp_path, database):
    """The singular is used for one case."""
    result = run(database, "import", str(wrote(tmp_path, "cases.jsonl", ROWS[:1])))
    assert result.stderr == "Imported 1 case as 'cases'.\n"


def _plain(boxed: str) -> str:
    return " ".join(boxed.replace("│", " ").split())
