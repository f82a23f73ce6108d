"""`scoreline batch compare`: cases that improved or regressed, and whether chance explains them."""

import asyncio
import json
from enum import StrEnum

from projections.database.connection import Connection, one_snapshot
from projections.queries.batches import BatchSnapshot, read_snapshot
from projections.queries.export import compared_pairs, export_rows
from scoreline.command_error import CommandError
from scoreline.reports.audit.batches import progress_bar
from scoreline.reports.compare_fold import BatchComparison, Side
from scoreline.reports.compare_text import CHANCE, Compared, compared_document, show
from scoreline.reports.compare_variants import Pairing, pair_variants
from scoreline.reports.export_record import Record, make_record
from scoreline.reports.labels import variant_labels
from scoreline.reports.pass_rate import is_scored
from scoreline.reports.screen import screen
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected

ADVANCE_EVERY = 5_000


REGRESSION = 101
"""The exit code of a comparison that found a regression, with `--fail-on-regression`."""


class Gate(StrEnum):
    """What counts as a regression."""

    NONE = "none"
    ANY = "any"
    """A case that passed before does not pass now."""
    SIGNIFICANT = "significant"
    """More cases stopped passing than began to, and chance is unlikely (exact McNemar test, p < 0.05)."""


def is_regression(compared: Compared, gate: Gate) -> bool:
    """Whether the second batch is worse than the first, by this gate."""
    worse, better = compared.comparison.newly_failing, compared.comparison.newly_passing
    match gate:
        case Gate.NONE:
            return False
        case Gate.ANY:
            return worse > 0
        case Gate.SIGNIFICANT:
            return worse > better and compared.p_value < CHANCE


def run_compare(
    servers: Servers, batches: tuple[str, str], *, limit: int, as_json: bool, gate: Gate = Gate.NONE
) -> int:
    """Compare two batches, the baseline first, and print the result; returns the exit code."""
    compared = asyncio.run(_compare(servers.postgres_url, *batches, limit=limit))
    if gate is not Gate.NONE and not compared.comparison.judged:
        raise CommandError(
            f"{batches[0]} and {batches[1]} have no case in common that both have scored, so"
            " --fail-on-regression can't fail."
        )
    if as_json:
        print(json.dumps(compared_document(compared)))  # noqa: T201 - machines read stdout
    else:
        show(screen(), compared)
    return REGRESSION if is_regression(compared, gate) else 0


async def _compare(postgres_url: str, left: str, right: str, *, limit: int) -> Compared:
    async with connected(postgres_url) as conn, one_snapshot(conn):
        before, after = await read_snapshot(conn, left), await read_snapshot(conn, right)
        pairing = _pairing(before, after)
        comparison = BatchComparison(
            limit, Side(is_scored=is_scored(before.spec)), Side(is_scored=is_scored(after.spec))
        )
        with progress_bar("comparing", max(before.progress.total, after.progress.total)) as advance:
            async for pair in compared_pairs(conn, left, right, variants=pairing.numbers):
                comparison.add(pair)
                if comparison.seen % ADVANCE_EVERY == 0:
                    advance(ADVANCE_EVERY)
        flips = [*comparison.failing, *comparison.passing]
        texts = await _texts(conn, before, [flip.left_id for flip in flips])
        texts |= await _texts(conn, after, [flip.right_id for flip in flips])
    return Compared(before, after, pairing, comparison, texts)


async def _texts(conn: Connection, snapshot: BatchSnapshot, ids: list[str]) -> dict[str, Record]:
    """Read inputs and outputs of the evaluations whose verdict changed."""
    labels = variant_labels(snapshot.spec)
    rows = export_rows(conn, snapshot.batch_id, only=ids)
    return {row.evaluation_id: make_record(row, labels) async for row in rows} if ids else {}


def _pairing(before: BatchSnapshot, after: BatchSnapshot) -> Pairing:
    return pair_variants(variant_labels(before.spec), variant_labels(after.spec))
