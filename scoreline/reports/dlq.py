"""`scoreline batch dlq`: what was given up, why, and how to try it again."""

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
from scoreline.formatting import excerpt, printable, stamp
from scoreline.invocation import batch_command, typed
from scoreline.reports.faults import scores_kept, why_ended
from scoreline.reports.screen import screen
from scoreline.reports.table import Column, fitted
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected

CASE_SHOWN = 100
MESSAGE_SHOWN = 200
"""Characters of what happened: enough for what to do about it, which comes last."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A batch's dead letters: how many of each kind, and the newest of them."""

    snapshot: BatchSnapshot
    kinds: dict[str, int]
    newest: list[DeadLetterRow]

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.kinds.values())


def run_dlq(servers: Servers, batch_id: str, *, limit: int, as_json: bool) -> int:
    """Print a batch's dead letters."""

    async def ask(url: str) -> DeadLetters:
        async with connected(url) as conn, one_snapshot(conn):
            snapshot = await read_snapshot(conn, batch_id)
            kinds = await dead_letter_kinds(conn, batch_id)
            return DeadLetters(snapshot, kinds, await read_dead_letters(conn, batch_id, limit=limit))

    found = asyncio.run(ask(servers.postgres_url))
    if as_json:
        for each in found.newest:
            print(json.dumps(_document(each)))  # noqa: T201 - machines read stdout
    else:
        show(screen(), found)
    return 0


def show(console: Console, found: DeadLetters) -> None:
    """Print them for people."""
    batch_id = printable(found.snapshot.batch_id)
    if not found.total:
        console.print(Text(f"Nothing of {batch_id} was given up."), soft_wrap=True)
        return
    kinds = ", ".join(f"{count:,} {excerpt(kind, 60)}" for kind, count in found.kinds.items())
    console.print(Text(f"{found.total:,} given up: {kinds}"), soft_wrap=True)
    console.print(_table(found.newest, console.width))
    if found.total > len(found.newest):
        console.print(f"… and {found.total - len(found.newest):,} more; see them with --limit")
    console.print(Text(f"To try all of them again: {batch_command('retry', batch_id)}"), soft_wrap=True)
    one = printable(found.newest[0].evaluation_id)
    console.print(Text(f"To try some: {batch_command('retry', batch_id, '--only', one)}"), soft_wrap=True)
    console.print(Text(f"The story of one: {typed('replay', one)}"), soft_wrap=True)


COLUMNS = tuple(
    Column(name, is_figure=name == "attempt")
    for name in ("evaluation", "case", "attempt", "kind", "when", "what happened")
)


def _table(letters: list[DeadLetterRow], width: int) -> RenderableType:
    rows: list[list[Text | str]] = []
    for each in letters:
        why = why_ended(each.status, each.error, each.closing)
        cells: list[Text | str] = [
            Text(printable(each.evaluation_id)),
            Text(excerpt(each.case_id, CASE_SHOWN)),
            str(each.attempt),
            Text(excerpt(why.kind if why else each.status, CASE_SHOWN)),
            stamp(each.ended_at),
            Text(_what_happened(why.message if why else "", each)),
        ]
        rows.append(cells)
    return fitted(COLUMNS, rows, width)


def _what_happened(message: str, each: DeadLetterRow) -> str:
    kept = ", ".join(f"{excerpt(name, 40)} {score:g}" for name, score in scores_kept(each.closing).items())
    return excerpt(message, MESSAGE_SHOWN) + (f" (scores kept: {kept})" if kept else "")


def _document(each: DeadLetterRow) -> dict[str, object]:
    why = why_ended(each.status, each.error, each.closing)
    return {
        "evaluation_id": each.evaluation_id,
        "case_id": each.case_id,
        "variant": each.variant,
        "repetition": each.repetition,
        "attempt": each.attempt,
        "status": each.status,
        "kind": why.kind if why else each.status,
        "message": why.message if why else "",
        "scores": scores_kept(each.closing),
        "ended_at": each.ended_at.isoformat(),
    }
