"""The views of imported datasets."""

import json

from psycopg import AsyncConnection
from rich.console import Console
from rich.table import Table
from rich.text import Text

from domain.template import as_text
from projections.datasets.repository import (
    Dataset,
    StoredCase,
    UnknownDataset,
    list_datasets,
    read_dataset,
    stored_cases,
)
from scoreline.command_error import CommandError
from scoreline.formatting import excerpt, printable
from scoreline.invocation import typed

_WIDTH = 60
"""Characters of an input or an expected value in a table."""


async def show_list(postgres_url: str, *, project: str | None, as_json: bool) -> None:
    """Print which datasets there are."""
    async with await AsyncConnection.connect(postgres_url) as conn:
        datasets = await list_datasets(conn, project=project)
    if as_json:
        for dataset in datasets:
            print(json.dumps(_plain(dataset)))  # noqa: T201 - machines read stdout
        return
    if not datasets:
        Console(stderr=True).print(
            f"No dataset was imported. See: {typed('dataset', 'import', '--help')}", soft_wrap=True
        )
        return
    table = Table("name", "project", "cases", "tags", "imported", "from")
    for each in datasets:
        when = f"{each.imported_at:%Y-%m-%d %H:%M}"
        texts = each.name, each.project, f"{each.cases:,}", ", ".join(each.tags), when, each.source
        table.add_row(*(Text(printable(text)) for text in texts))
    Console().print(table)


async def show_one(postgres_url: str, *, project: str, name: str, limit: int, as_json: bool) -> None:
    """Print a dataset and its first cases."""
    async with await AsyncConnection.connect(postgres_url) as conn:
        try:
            dataset = await read_dataset(conn, project=project, name=name)
            cases = [case async for case in stored_cases(conn, project=project, name=name, limit=limit)]
        except UnknownDataset as error:
            raise CommandError(f"{error} See: scoreline dataset list") from None
    if as_json:
        print(json.dumps({**_plain(dataset), "first": [_plain_case(case) for case in cases]}))  # noqa: T201 - as above
        return
    _print(dataset, cases)


def _print(dataset: Dataset, cases: list[StoredCase]) -> None:
    console = Console()
    for key, value in _plain(dataset).items():
        shown = ", ".join(value) if isinstance(value, list) else str(value)
        console.print(Text(f"{key:12}"), Text(printable(shown)), sep="")
    table = Table("#", "id", "input", "expected", "tags")
    for position, case, tags in cases:
        values = ("" if value is None else as_text(value) for value in (case.input, case.expected))
        texts = str(position), case.id, *(excerpt(value, _WIDTH) for value in values), ", ".join(tags)
        table.add_row(*(Text(printable(text)) for text in texts))
    console.print(table)
    if dataset.cases > len(cases):
        left = f"({len(cases)} of {dataset.cases:,} cases; --limit shows more)"
        Console(stderr=True).print(left, highlight=False)


def _plain(dataset: Dataset) -> dict[str, object]:
    return {
        "name": dataset.name,
        "project": dataset.project,
        "cases": dataset.cases,
        "tags": dataset.tags,
        "source": dataset.source,
        "imported_at": dataset.imported_at.isoformat(),
    }


def _plain_case(stored: StoredCase) -> dict[str, object]:
    position, case, tags = stored
    return {
        "position": position,
        "id": case.id,
        "input": case.input,
        "expected": case.expected,
        "tags": list(tags),
        "fields": case.metadata,
    }
