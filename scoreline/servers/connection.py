"""A connection to PostgreSQL whose errors are explained to the user."""

import logging
from collections.abc import AsyncIterator
from concurrent.futures import BrokenExecutor
from contextlib import asynccontextmanager
from difflib import get_close_matches

from psycopg import AsyncConnection, DataError, InterfaceError, OperationalError

from projections.database.connection import Connection
from projections.database.errors import UnknownBatch
from projections.queries.batch_summary import nearby_batches
from scoreline.command_error import CommandError
from scoreline.formatting import printable

NEARBY = 20


@asynccontextmanager
async def connected(postgres_url: str) -> AsyncIterator[Connection]:
    """Yield a connection; an unknown batch becomes a `CommandError` that names similar ids."""
    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # its errors are reported below
    try:
        opened = await AsyncConnection.connect(
            postgres_url, connect_timeout=10, application_name="scoreline replay"
        )
    except OperationalError as error:
        raise CommandError("PostgreSQL does not answer; no change was made in part. Try again.") from error
    async with opened as conn:
        try:
            yield conn
        except UnknownBatch as unknown:
            raise await _named(postgres_url, unknown) from None
        except (OperationalError, InterfaceError) as error:
            if not conn.broken:
                raise  # the server still answers, and its own message is reported: a full disk, for example
            # Not the driver's message: it may quote parts of the URL.
            raise CommandError("PostgreSQL went away; no change was made in part. Try again.") from error
        except DataError as error:
            raise CommandError(
                f"A row can't be read: {str(error).strip()}. Correct it by hand first."
            ) from error
        except UnicodeEncodeError:
            raise CommandError("That is no id: it is not valid UTF-8.") from None
        except BrokenExecutor as error:
            raise CommandError(
                "A process that shared the work has died; no change was made in part. Try again."
            ) from error


async def _named(postgres_url: str, unknown: UnknownBatch) -> CommandError:
    async with await AsyncConnection.connect(postgres_url) as conn:
        candidates = await nearby_batches(conn, unknown.batch_id, limit=NEARBY)
    begins_so = [key for key in candidates if key.startswith(unknown.batch_id)]
    near = begins_so[:3] or get_close_matches(unknown.batch_id, candidates, n=3, cutoff=0.5)
    hint = f" Nearest: {', '.join(map(printable, near))}" if near else ""
    return CommandError(f"There is no batch {printable(unknown.batch_id)}.{hint}")
