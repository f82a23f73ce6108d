"""`scoreline quarantine`: lists quarantined entries and prints one."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from psycopg import AsyncConnection
from rich.console import Console
from rich.text import Text

from projections.queries.quarantine import QuarantinedEntry, quarantine_find, quarantine_list
from scoreline.command_error import CommandError
from scoreline.formatting import printable
from scoreline.reports.screen import screen
from scoreline.reports.table import Column, fitted
from scoreline.servers.addresses import Servers

COLUMNS = tuple(map(Column, ("id", "when", "reason", "evaluation", "what is wrong")))
SHOWN_BYTES = 4_096


def show_list(
    servers: Servers, evaluation: str | None, reason: str | None, limit: int, *, as_json: bool
) -> None:
    """Print the quarantine, newest first."""

    async def read(conn: AsyncConnection[Any]) -> list[QuarantinedEntry]:
        return await quarantine_list(conn, evaluation=evaluation, reason=reason, limit=limit)

    entries = _read(servers, read)
    if as_json:
        for entry in entries:
            print(json.dumps(_plain(entry)))  # noqa: T201 - machines read stdout
        return
    if not entries:
        Console(stderr=True).print("The quarantine is empty.")
        return
    rows: list[list[Text | str]] = []
    for entry in entries:
        when = f"{entry.quarantined_at:%Y-%m-%d %H:%M:%S}"
        # Foreign text: neither markup nor escape sequences take effect.
        evaluation_id = Text(printable(entry.evaluation_id or "-"))
        rows.append([entry.id[:12], when, entry.reason, evaluation_id, Text(printable(entry.detail))])
    console = screen()
    console.print(fitted(COLUMNS, rows, console.width))


def show_one(servers: Servers, identifier: str, *, as_json: bool) -> None:
    """Print one entry with its bytes."""

    async def read(conn: AsyncConnection[Any]) -> list[QuarantinedEntry]:
        return await quarantine_find(conn, identifier, max_bytes=SHOWN_BYTES)

    entries = _read(servers, read)
    if not entries:
        raise CommandError(f"Nothing in quarantine has an id that begins with {identifier!r}.")
    if len(entries) > 1:
        raise CommandError(f"More than one id begins with {identifier!r}; give more of it.")
    entry = entries[0]
    if as_json:
        body = entry.body.decode(errors="backslashreplace")
        print(json.dumps({**_plain(entry), "entry_id": entry.entry_id, "body": body}))  # noqa: T201 - as above
        return
    console = Console()
    for name, value in {**_plain(entry), "entry_id": entry.entry_id}.items():
        console.print(Text(f"{name:15}"), Text(printable(str(value))), sep="")
    console.print()
    console.print(Text(printable(entry.body.decode(errors="backslashreplace"))))
    if entry.size > SHOWN_BYTES:
        Console(stderr=True).print(f"(the first {SHOWN_BYTES} of {entry.size} bytes)")


def _read(
    servers: Servers,
    query: Callable[[AsyncConnection[Any]], Awaitable[list[QuarantinedEntry]]],
) -> list[QuarantinedEntry]:
    async def connected(url: str) -> list[QuarantinedEntry]:
        async with await AsyncConnection.connect(url) as conn:
            return await query(conn)

    return asyncio.run(connected(servers.postgres_url))


def _plain(entry: QuarantinedEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "quarantined_at": entry.quarantined_at.isoformat(),
        "reason": entry.reason,
        "evaluation_id": entry.evaluation_id,
        "detail": entry.detail,
        "size": entry.size,
    }
