"""A process that submits a batch and dies at named points of the transaction."""

import logging
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import uvloop

from coordinator.acceptance import accept
from coordinator.submission import NewEvaluation
from eventlog.clock import utc_now
from eventlog.keys import DEFAULT_SHARDS
from projections.database.connection import make_pool
from projections.ledger import postgres as ledger_postgres
from projections.ledger.batch import NewBatch
from projections.ledger.contract import BatchExists
from projections.ledger.postgres import PostgresLedger
from tests.chaos.failpoints import after, fuse
from tests.chaos.fleet_members import Point

ACCEPT_CHUNK = 16
BATCH_EXISTS = 3
"""The exit code of a submission that exists already."""
READING = "an evaluation is read"
BEFORE_COMMIT: dict[str, Point] = {
    "the batch is inserted": (ledger_postgres, "_insert_batch"),
    "a chunk is inserted": (ledger_postgres, "_insert_chunk"),
    "totals are added": (ledger_postgres, "_add_totals"),
}
AFTER_COMMIT: dict[str, Point] = {"the batch is accepted": (PostgresLedger, "accept")}
"""After each of these he may die, but for the first: that is before."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What is submitted, and where the process dies."""

    postgres_url: str
    batch: NewBatch
    evaluations: tuple[NewEvaluation, ...]
    dies: str | None = None
    dies_at_call: int = 1


def hand_in(submission: Submission) -> None:
    """Submit a batch; a second submission has an exit code of its own."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    vars(ledger_postgres)["ACCEPT_CHUNK"] = ACCEPT_CHUNK
    burn = fuse(submission.dies_at_call)
    if point := {**BEFORE_COMMIT, **AFTER_COMMIT}.get(submission.dies or ""):
        after(*point, burn)
    try:
        uvloop.run(_hand_in(submission, burn if submission.dies == READING else _nothing))
    except BatchExists:
        sys.exit(BATCH_EXISTS)


def _nothing() -> None:
    """Live on."""


async def _hand_in(submission: Submission, on_read: Callable[[], None]) -> None:
    pool = make_pool(submission.postgres_url, size=2)
    await pool.open()
    try:
        ledger, read = PostgresLedger(pool, shards=DEFAULT_SHARDS), _read(submission, on_read)
        await accept(ledger, submission.batch, read, now=utc_now(), shards=DEFAULT_SHARDS)
    finally:
        await pool.close()


async def _read(submission: Submission, on_read: Callable[[], None]) -> AsyncIterator[NewEvaluation]:
    for evaluation in submission.evaluations:
        on_read()
        yield evaluation
