"""Which batches a command is about, a connection to ask, and progress on the way."""

import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import asynccontextmanager, contextmanager
from difflib import get_close_matches

from psycopg import AsyncConnection, DataError, InterfaceError, OperationalError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from projections.pages import Connection, UnknownBatch
from projections.summary import batch_ids, nearby_batches
from scoreline.formatting import printable
from scoreline.problem import Problem

NEARBY = 20


@asynccontextmanager
async def connected(postgres_url: str) -> AsyncIterator[Connection]:
    """Lend a connection; a batch that nobody knows becomes a problem that names those near it."""
    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it says is said below
    try:
        opened = await AsyncConnection.connect(
            postgres_url, connect_timeout=10, application_name="scoreline replay"
        )
    except OperationalError as error:
        raise Problem("PostgreSQL does not answer; nothing is half done. Try again.") from error
    async with opened as conn:
        try:
            yield conn
        except UnknownBatch as unknown:
            raise await _named(postgres_url, unknown) from None
        except (OperationalError, InterfaceError) as error:
            if not conn.broken:
                raise  # it still answers: a full disk, say, is told in its own words
            # Not the driver's words: they may quote pieces of the URL.
            raise Problem("PostgreSQL went away; nothing is half done. Try again.") from error
        except DataError as error:
            raise Problem(f"A row can't be read: {str(error).strip()}. Mend it by hand first.") from error
        except UnicodeEncodeError:
            raise Problem("That is no id: it is not valid UTF-8.") from None
        except BrokenExecutor as error:
            raise Problem(
                "A process that shared the work has died; nothing is half done. Try again."
            ) from error


async def wanted_batches(conn: Connection, batch_id: str | None) -> Sequence[str]:
    """Name the one batch that was asked for, or all there are."""
    if batch_id is not None:
        return [batch_id]
    async with conn.transaction():
        return await batch_ids(conn)


async def _named(postgres_url: str, unknown: UnknownBatch) -> Problem:
    async with await AsyncConnection.connect(postgres_url) as conn:
        candidates = await nearby_batches(conn, unknown.batch_id, limit=NEARBY)
    begins_so = [key for key in candidates if key.startswith(unknown.batch_id)]
    near = begins_so[:3] or get_close_matches(unknown.batch_id, candidates, n=3, cutoff=0.5)
    hint = f" Nearest: {', '.join(map(printable, near))}" if near else ""
    return Problem(f"There is no batch {printable(unknown.batch_id)}.{hint}")


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how far long work has come, where somebody is watching."""
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
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
