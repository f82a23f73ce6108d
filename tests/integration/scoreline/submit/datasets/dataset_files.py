"""Imported datasets for tests."""

import json
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection
from typer.testing import CliRunner, Result

from projections.datasets.repository import NewDataset
from scoreline.cli.dataset import app

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "x\0", "answer": ["1", None], "tags": ["t"], "level": 1.5},
    {"id": "b", "question": {"deep": [1]}, "store_output_as": "it"},
    {"id": "c", "question": "what of {it}?\\ \t\n"},
]


def dataset(name: str = "maths", project: str = "default") -> NewDataset:
    return NewDataset(name, project, "cases.jsonl", ("nightly",))


async def count(conn: AsyncConnection[Any]) -> tuple[int, int]:
    """How many datasets and cases there are."""
    query = "SELECT (SELECT count(*) FROM datasets), (SELECT count(*) FROM test_cases)"
    row = await (await conn.execute(query)).fetchone()
    assert row
    return row[0], row[1]


def run(database: str, *arguments: str) -> Result:
    urls = {"EVAL_REDIS_URL": "redis://127.0.0.1:1/0", "EVAL_POSTGRES_URL": database}
    return CliRunner().invoke(app, arguments, env=urls)


def imported(database: str, path: Path, *arguments: str) -> dict[str, Any]:
    result = run(database, "import", str(path), "--json", *arguments)
    assert result.exit_code == 0, result.output
    about: dict[str, Any] = json.loads(result.stdout)
    return about
