"""Streams of whole batches through a server-side cursor: memory holds a few hundred rows."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from projections.database.connection import Connection
from projections.sql import query

ROWS_AT_A_TIME = 200
"""Few: an output may have half a megabyte."""
PAIRS_AT_A_TIME = 5_000


class ExportRow(NamedTuple):
    """One evaluation with its results; JSON as text."""

    evaluation_id: str
    case_id: str
    variant: int
    repetition: int
    status: str
    verdict: str | None
    score: float | None
    scores: str | None
    output: str | None
    input: str | None
    expected: str | None
    error: str | None
    closing: str | None
    attempts: int
    tokens: int | None
    cost_usd: Decimal | None
    latency_ms: float | None
    exit_code: int | None
    bridged: bool
    ended_at: datetime | None
    metadata: str | None = None
    """The other columns of its row in the dataset."""
    stored: str | None = None
    """Values stored by earlier evaluations of its serial group, by the names a prompt uses."""
    cached: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None


class ComparedPair(NamedTuple):
    """Corresponding evaluations of two batches; a missing side is None throughout."""

    case_id: str
    place: int
    """Which pair of variants, from 1."""
    repetition: int
    left_id: str | None
    left_outcome: str | None
    """passed, failed, dead_letter or cancelled; None where it has not ended."""
    left_score: float | None
    right_id: str | None
    right_outcome: str | None
    right_score: float | None


async def ending_counts(conn: Connection, batch_id: str) -> dict[tuple[str, str], int]:
    """Count a batch's evaluations by (status, verdict); unended ones are `open`."""
    rows = await (await conn.execute(query("export_counts"), [batch_id])).fetchall()
    return {(status, verdict): count for status, verdict, count in rows}


async def export_rows(
    conn: Connection, batch_id: str, *, only: Sequence[str] | None = None
) -> AsyncIterator[ExportRow]:
    """Stream a batch, or some evaluations of it, in dataset order."""
    wanted = {"batch": batch_id, "only": None if only is None else list(only)}
    async for row in _streamed(conn, "export_rows", wanted, ROWS_AT_A_TIME):
        yield ExportRow(*row)


async def compared_pairs(
    conn: Connection, left: str, right: str, *, variants: Sequence[tuple[int, int]]
) -> AsyncIterator[ComparedPair]:
    """Stream the corresponding evaluations of two batches; `variants` pairs theirs."""
    wanted = {
        "left": left,
        "right": right,
        "left_variants": [ours for ours, _ in variants],
        "right_variants": [theirs for _, theirs in variants],
    }
    async for row in _streamed(conn, "compare_rows", wanted, PAIRS_AT_A_TIME):
        yield ComparedPair(*row)


async def _streamed(
    conn: Connection, name: str, values: Sequence[object] | Mapping[str, object], size: int
) -> AsyncIterator[tuple[Any, ...]]:
    async with conn.cursor(name=name) as cursor:
        await cursor.execute(query(name), values)
        while rows := await cursor.fetchmany(size):
            for row in rows:
                yield row
