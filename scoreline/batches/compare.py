"""`scoreline batch compare`: what has become better, what worse, and whether that may be chance."""

import asyncio
import json

from projections.batches import Snapshot, read_snapshot
from projections.pages import one_state
from projections.streams import pairs
from scoreline.audit.batches import connected, progress_bar
from scoreline.batches.compare_fold import Comparison, Side
from scoreline.batches.compare_variants import Pairing, pair_variants
from scoreline.batches.compare_view import Compared, compared_document, show
from scoreline.batches.labels import variant_labels
from scoreline.batches.pass_rate import is_scored
from scoreline.batches.screen import screen
from scoreline.servers import ready_postgres
from scoreline.settings import load_settings

ADVANCE_EVERY = 5_000


def run_compare(left: str, right: str, *, limit: int, as_json: bool) -> int:
    """Compare two batches and print what was found."""
    with ready_postgres(load_settings()) as servers:
        found = asyncio.run(_compare(servers.postgres_url, left, right, limit=limit))
    if as_json:
        print(json.dumps(compared_document(found)))  # noqa: T201 - machines read stdout
    else:
        show(screen(), found)
    return 0


async def _compare(postgres_url: str, left: str, right: str, *, limit: int) -> Compared:
    async with connected(postgres_url) as conn, one_state(conn):
        before, after = await read_snapshot(conn, left), await read_snapshot(conn, right)
        pairing = _pairing(before, after)
        comparison = Comparison(
            limit, Side(is_scored=is_scored(before.spec)), Side(is_scored=is_scored(after.spec))
        )
        with progress_bar("comparing", max(before.total, after.total)) as advance:
            async for pair in pairs(conn, left, right, variants=pairing.numbers):
                comparison.add(pair)
                if comparison.seen % ADVANCE_EVERY == 0:
                    advance(ADVANCE_EVERY)
    return Compared(before, after, pairing, comparison)


def _pairing(before: Snapshot, after: Snapshot) -> Pairing:
    return pair_variants(variant_labels(before.spec), variant_labels(after.spec))
