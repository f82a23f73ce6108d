"""Import of a file into the database under a name, in one transaction."""

import json
from collections.abc import Iterator
from pathlib import Path

from psycopg import AsyncConnection
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from projections.datasets.repository import DatasetExists, NewDataset, StoredCase, import_dataset
from scoreline.command_error import CommandError
from scoreline.formatting import counted
from scoreline.submit.datasets.file_formats import OnRead
from scoreline.submit.datasets.rows import file_rows
from scoreline.submit.datasets.sources import FileSource


async def import_file(
    postgres_url: str,
    source: FileSource,
    dataset: NewDataset,
    *,
    replace: bool,
    on_read: OnRead | None = None,
) -> int:
    """Import every row of a file and count them; raises `CommandError`, and leaves nothing behind then."""
    async with await AsyncConnection.connect(postgres_url) as conn:
        try:
            return await import_dataset(conn, dataset, _stored(source, on_read), replace=replace)
        except DatasetExists as error:
            raise CommandError(f"{error} Use --replace to put the file in its place, or --name.") from None


def _stored(source: FileSource, on_read: OnRead | None) -> Iterator[StoredCase]:
    for row in file_rows(source.path, source.columns, on_read=on_read):
        yield StoredCase(row.position, row.case, row.tags)


async def import_shown(
    postgres_url: str, source: FileSource, dataset: NewDataset, *, replace: bool, as_json: bool
) -> None:
    """Import a file with a progress bar, and print the result."""
    console = Console(stderr=True)
    with _bar(console) as bar:
        task = bar.add_task(f"importing {dataset.name}", total=_size(source.path))

        def on_read(size: int) -> None:
            bar.advance(task, size)

        count = await import_file(postgres_url, source, dataset, replace=replace, on_read=on_read)
    if as_json:
        about = {"name": dataset.name, "project": dataset.project, "cases": count, "source": dataset.source}
        print(json.dumps(about))  # noqa: T201 - machines read stdout
        return
    console.print(f"Imported {counted(count, 'case')} as {dataset.name!r}.", markup=False, highlight=False)


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.exists() else None


def _bar(console: Console) -> Progress:
    looks = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()
    return Progress(
        *looks, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    )
