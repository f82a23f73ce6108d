"""A checker that can't fail is worthless: whatever row of whatever table is tampered with, it is reported.

Each case has a batch of its own in one database: `whole`, an evaluation like any other; `bridged`, of
which one event got lost; and `contradicted`, of which one event was written a second time, differently.
"""

import asyncio
import uuid
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import AsyncConnection, sql

from eventlog.codec import QuarantineReason, encode
from eventlog.events import Event
from eventlog.keys import DEFAULT_SHARDS
from projections.database.connection import make_pool
from projections.database.readiness import prepare
from projections.store.postgres import PostgresStore
from scoreline.servers.addresses import Servers
from tests.builders import event, history
from tests.chaos.checker import Expected, check, poison
from tests.chaos.findings import Findings
from tests.storage_world import GAP_TIMEOUT, World

WORDS = "queued provisioning running responded scored completed"
SCORED, TOKENS = 4, 3 * 8
OF_WHOLE = "WHERE evaluation_id = %(batch)s || '-whole'"


class Tampering(NamedTuple):
    """What is done to the tables, and what the checker must report."""

    statement: str
    kind: str
    words: str


TAMPERINGS = {
    "event gone": Tampering(f"DELETE FROM events {OF_WHOLE} AND sequence = 3", "lost", "3), acknowledged"),
    "event altered": Tampering(
        f"UPDATE events SET event = replace(event::text, '4242', '4243')::json {OF_WHOLE} AND sequence = 2",
        "violations",
        "not the one that was acknowledged",
    ),
    "event twice": Tampering(
        "INSERT INTO events SELECT (month + interval '1 month')::date, evaluation_id, attempt,"
        " sequence, type, verdict, occurred_at, entry_id, recorded_at, event"
        f" FROM events {OF_WHOLE} AND sequence = 3",
        "doubled",
        "stored 2 times",
    ),
    "verdict altered": Tampering(
        f"UPDATE events SET verdict = 'stale' {OF_WHOLE} AND sequence = 3",
        "violations",
        "1 events are stale",
    ),
    "evaluation gone": Tampering(f"DELETE FROM evaluations {OF_WHOLE}", "lost", "-whole"),
    "evaluation reopened": Tampering(
        f"UPDATE evaluations SET ended_at = NULL {OF_WHOLE}", "stuck", "-whole"
    ),
    "evaluation moved": Tampering(
        f"UPDATE evaluations SET sequence = 4 {OF_WHOLE}",
        "violations",
        "-whole sequence: is 4, should be 5",
    ),
    "evaluation invented": Tampering(
        "INSERT INTO evaluations SELECT %(batch)s || '-ghost', batch_id, month, shard, attempt, sequence,"
        f" state, owner, bridged, epoch, published, ended_at FROM evaluations {OF_WHOLE}",
        "violations",
        "-ghost: no writer wrote it",
    ),
    "scorecard gone": Tampering(f"DELETE FROM scorecards {OF_WHOLE}", "violations", "scorecards"),
    "scorecard altered": Tampering(
        f"UPDATE scorecards SET verdict = 'failed' {OF_WHOLE}", "violations", "-whole verdict: is failed"
    ),
    "counted twice": Tampering(
        "UPDATE batch_progress SET completed = completed + 1 WHERE batch_id = %(batch)s",
        "violations",
        "completed: is",
    ),
    "paid twice": Tampering(
        "UPDATE batch_progress SET tokens = tokens + 1 WHERE batch_id = %(batch)s", "doubled", "tokens"
    ),
    "payment forgotten": Tampering(
        "UPDATE batch_progress SET tokens = tokens - 1 WHERE batch_id = %(batch)s", "lost", "tokens"
    ),
    "bridge gone": Tampering(
        "DELETE FROM gap_bridges WHERE evaluation_id = %(batch)s || '-bridged'", "violations", "-bridged"
    ),
    "bridge widened": Tampering(
        "UPDATE gap_bridges SET missing = '{[3,5)}' WHERE evaluation_id = %(batch)s || '-bridged'",
        "violations",
        "was not made away with",
    ),
    "poison gone": Tampering(
        "DELETE FROM quarantine WHERE evaluation_id = %(batch)s || '-contradicted'", "lost", "'conflict')"
    ),
    "poison invented": Tampering(
        "INSERT INTO quarantine VALUES (%(batch)s, %(batch)s || '-whole', 'garbage', '', '1-0', '')",
        "violations",
        "no row put in",
    ),
    "batch gone": Tampering("DELETE FROM batches WHERE batch_id = %(batch)s", "lost", "There is no batch"),
    "batch moved": Tampering(
        "UPDATE batches SET month = month - interval '1 month' WHERE batch_id = %(batch)s",
        "violations",
        "month",
    ),
}
UNTOUCHED = "untouched"


@pytest.fixture(scope="module")
def database(servers: Servers) -> Iterator[str]:
    """A database with a batch for each case."""
    name = f"checker_{uuid.uuid4().hex}"
    url = urlsplit(servers.postgres_url)._replace(path=f"/{name}").geturl()
    with psycopg.connect(servers.postgres_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        asyncio.run(fill(url))
        yield url
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


async def fill(url: str) -> None:
    """Store every case's batch as a storage worker does."""
    await prepare(url, shards=DEFAULT_SHARDS)
    async with make_pool(url, size=2) as pool:
        world = World()
        ids = [key for batch in (*TAMPERINGS, UNTOUCHED) for key in write(world, batch)]
        world.wait(GAP_TIMEOUT)
        await world.storage(tables=PostgresStore(pool)).store(ids)
        async with pool.connection() as conn:  # for the event that is stored twice
            await conn.execute(
                "SELECT ensure_events_partition((month + interval '1 month')::date) FROM batches"
            )


def evaluations(batch: str) -> dict[str, list[Event]]:
    """The events of each evaluation of a batch, as their writers sent them."""
    names = [f"{batch}-{name}" for name in ("whole", "bridged", "contradicted")]
    return {name: history(WORDS, evaluation_id=name, batch_id=batch) for name in names}


def write(world: World, batch: str) -> list[str]:
    """Write a batch, with one event lost and one contradicted."""
    for name, events in evaluations(batch).items():
        world.xadd(*(one for one in events if not (name.endswith("bridged") and one.sequence == SCORED)))
        if name.endswith("contradicted"):
            earlier = events[2]
            world.xadd(
                event(earlier.data, evaluation_id=name, batch_id=batch, sequence=2, source="an impostor")
            )
    return list(evaluations(batch))


async def found_in(url: str, batch: str) -> Findings:
    """What the checker reports of a batch."""
    sent = {(key, *one.key): encode(one) for key, events in evaluations(batch).items() for one in events}
    lost = (f"{batch}-bridged", 1, SCORED)
    del sent[lost]
    expected = Expected(
        batch,
        set(evaluations(batch)),
        acknowledged=sent,
        tokens=(TOKENS, TOKENS),
        poison=poison([f"{batch}-contradicted"], QuarantineReason.CONFLICT),
        made_away_with={lost},
    )
    async with await AsyncConnection.connect(url, autocommit=True) as conn:
        return await check(conn, expected)


async def test_nothing_is_found_where_nothing_was_done(database: str) -> None:
    """An untouched batch is clean, its bridge and its poison included."""
    found = await found_in(database, UNTOUCHED)
    assert not found, found.brief()
    assert found.paths["bridged"] == found.paths["quarantined: conflict"] == 1


@pytest.mark.parametrize("case", TAMPERINGS)
async def test_tampering_is_found(database: str, case: str) -> None:
    """A row that is changed behind the workers' back is reported by its key."""
    statement, kind, words = TAMPERINGS[case]
    async with await AsyncConnection.connect(database, autocommit=True) as conn:
        changed = await conn.execute(statement.encode(), {"batch": case})
    assert changed.rowcount > 0
    results = getattr(await found_in(database, case), kind)
    assert any(words in finding for finding in results), results
