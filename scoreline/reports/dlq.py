"""`scoreline batch dlq`: the dead letters of a batch, the reasons, and the command that retries them."""

import asyncio
import json
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.text import Text

from projections.database.connection import one_snapshot
from projections.queries.batches import (
    BatchSnapshot,
    DeadLetterRow,
    dead_letter_kinds,
    read_dead_letters,
    read_snapshot,
)
from scoreline.formatting import counted, excerpt, printable, stamp
from scoreline.invocation import batch_command, typed
from scoreline.reports.faults import scores_kept, why_ended
from scoreline.reports.screen import screen
from scoreline.reports.table import Column, fitted
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected

CASE_SHOWN = 100
MESSAGE_SHOWN = 200
"""Characters of a message: advice comes at its end, and must not be cut off."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A batch's dead letters: how many of each kind, and the newest of them."""

    snapshot: BatchSnapshot
    kinds: dict[str, int]
    newest: list[DeadLetterRow]

    @property
    def total(self) -> int:
        """The number of dead letters."""
        return sum(self.kinds.values())


def run_dlq(servers: Servers, batch_id: str, *, limit: int, as_json: bool) -> int:
    """Print a batch's dead letters."""

    async def read(url: str) -> DeadLetters:
        async with connected(url) as conn, one_snapshot(conn):
            snapshot = await read_snapshot(conn, batch_id)
            kinds = await dead_letter_kinds(conn, batch_id)
            return DeadLetters(snapshot, kinds, await read_dead_letters(conn, batch_id, limit=limit))

    dead_letters = asyncio.run(read(servers.postgres_url))
    if as_json:
        for each in dead_letters.newest:
            print(json.dumps(_document(each)))  # noqa: T201 - machines read stdout
    else:
        show(screen(), dead_letters)
    return 0


def show(console: Console, dead_letters: DeadLetters) -> None:
    """Print dead letters with the commands that retry and replay them."""
    batch_id = printable(dead_letters.snapshot.batch_id)
    if not dead_letters.total:
        console.print(Text(f"{batch_id} has no dead letters."), soft_wrap=True)
        return
    kinds = ", ".join(f"{count:,} {excerpt(kind, 60)}" for kind, count in dead_letters.kinds.items())
    total = dead_letters.total
    console.print(Text(f"{counted(total, 'dead letter')}: {kinds}"), soft_wrap=True)
    console.print(_table(dead_letters.newest, console.width))
    if total > len(dead_letters.newest):
        console.print(f"… and {total - len(dead_letters.newest):,} more; see them with --limit")
    console.print(Text(f"To retry all of them: {batch_command('retry', batch_id)}"), soft_wrap=True)
    one = printable(dead_letters.newest[0].evaluation_id)
    console.print(Text(f"To retry some: {batch_command('retry', batch_id, '--only', one)}"), soft_wrap=True)
    console.print(Text(f"The history of one: {typed('replay', one)}"), soft_wrap=True)


COLUMNS = tuple(
    Column(name, is_figure=name == "attempt")
    for name in ("evaluation", "case", "attempt", "kind", "when", "what happened")
)


def _table(letters: list[DeadLetterRow], width: int) -> RenderableType:
    rows: list[list[Text | str]] = []
    for each in letters:
        fault = why_ended(each.status, each.error, each.closing)
        cells: list[Text | str] = [
            Text(printable(each.evaluation_id)),
            Text(excerpt(each.case_id, CASE_SHOWN)),
            str(each.attempt),
            Text(excerpt(fault.kind if fault else each.status, CASE_SHOWN)),
            stamp(each.ended_at),
            Text(_message(fault.message if fault else "", each)),
        ]
        rows.append(cells)
    return fitted(COLUMNS, rows, width)


def _message(message: str, each: DeadLetterRow) -> str:
    kept = ", ".join(f"{excerpt(name, 40)} {score:g}" for name, score in scores_kept(each.closing).items())
    return excerpt(message, MESSAGE_SHOWN) + (f" (scores kept: {kept})" if kept else "")


def _document(each: DeadLetterRow) -> dict[str, object]:
    fault = why_ended(each.status, each.error, each.closing)
    return {
        "evaluation_id": each.evaluation_id,
        "case_id": each.case_id,
        "variant": each.variant,
        "repetition": each.repetition,
        "attempt": each.attempt,
        "status": each.status,
        "kind": fault.kind if fault else each.status,
        "message": fault.message if fault else "",
        "scores": scores_kept(each.closing),
        "ended_at": each.ended_at.isoformat(),
    }
