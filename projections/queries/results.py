"""Read queries for the report of a finished batch; they read every scorecard."""

from typing import NamedTuple

from projections.database.connection import Connection
from projections.sql import query


class EvaluatorResult(NamedTuple):
    """Scores of one evaluator and variant."""

    variant: int
    evaluator: str
    scored: int
    passed: int
    decided: int
    """Scores with a verdict; 0 for an evaluator without a pass threshold."""
    score: float | None


class DeadLetterGroup(NamedTuple):
    """Dead letters with the same reason; `error` and `closing` of one of them are JSON."""

    kind: str
    count_: int
    example: str
    status: str
    error: str | None
    closing: str | None


async def evaluator_results(conn: Connection, batch_id: str) -> list[EvaluatorResult]:
    """Aggregate the scores of each evaluator and variant."""
    rows = await (await conn.execute(query("evaluator_results"), [batch_id])).fetchall()
    return [EvaluatorResult(*row) for row in rows]


async def first_failed(conn: Connection, batch_id: str, *, limit: int) -> list[str]:
    """Return the ids of the first evaluations with the verdict `failed`."""
    wanted = {"batch": batch_id, "limit": limit}
    return [name for (name,) in await (await conn.execute(query("failed_evaluations"), wanted)).fetchall()]


async def dead_letter_groups(conn: Connection, batch_id: str) -> list[DeadLetterGroup]:
    """Group dead letters by reason, the most frequent first."""
    rows = await (await conn.execute(query("dead_letter_groups"), [batch_id])).fetchall()
    return [DeadLetterGroup(*row) for row in rows]
