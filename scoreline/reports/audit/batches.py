"""The batches that a command processes, and its progress bar."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from projections.database.connection import Connection
from projections.queries.batch_summary import batch_ids


async def wanted_batches(conn: Connection, batch_id: str | None) -> Sequence[str]:
    """Return the given batch, or all batches."""
    if batch_id is not None:
        return [batch_id]
    async with conn.transaction():
        return await batch_ids(conn)


@contextmanager
def progress_bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr, where it is a terminal; yields the function that advances it."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),  # a batch may have any name
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)
