"""A verification by several processes."""

import sys
from typing import Any

from psycopg import AsyncConnection

from eventlog.keys import DEFAULT_SHARDS
from projections.verification.rebuild import rebuild
from projections.verification.verify import verify
from tests.builders import BATCH
from tests.integration.place import Place, life
from tests.integration.worker import Started, alive, ended_in_any_case
from tests.waiting import until


async def test_several_processes_give_the_same_result(here: Place) -> None:
    """They read one snapshot of the database, whatever is written meanwhile, and skip no page."""
    await here.store(*map(life, range(2_300)))
    await here.alter("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'evaluation-2'")
    await here.alter("UPDATE evaluations SET owner = 'altered' WHERE evaluation_id = 'evaluation-2222'")
    seen: list[int] = []
    async with await AsyncConnection.connect(here.url) as conn:
        verified = await verify(conn, BATCH, shards=DEFAULT_SHARDS, processes=2, on_page=seen.append)
        assert (verified.evaluations, verified.events, sum(seen)) == (2_300, 11_500, 2_300)
        assert [found.column for found in verified.differences] == ["score", "owner"]
        rebuilt = await rebuild(conn, BATCH, shards=DEFAULT_SHARDS, processes=2)
    assert (rebuilt.evaluations, rebuilt.evaluation_rows, rebuilt.scorecard_rows) == (2_300, 1, 1)
    assert await here.differences() == []


async def never_done(conn: AsyncConnection[Any], _job: object) -> None:
    """Run until the process is killed."""
    await conn.execute("SELECT pg_sleep(3600)")


PARENT = f"""
import asyncio, sys
from psycopg import AsyncConnection
from projections.verification.pages import read_batch
from projections.database.connection import one_snapshot
from projections.verification.page_workers import over_pages
from {__name__} import {never_done.__name__} as work

async def main():
    async with await AsyncConnection.connect(sys.argv[1]) as conn, one_snapshot(conn):
        batch = await read_batch(conn, "{BATCH}")
        async for _ in over_pages(conn, batch, work, shards=4, processes=2):
            pass

asyncio.run(main())
"""


async def test_child_processes_end_with_their_parent(here: Place) -> None:
    """A child that outlived its parent would keep its connection and a pipe for ever."""
    await here.store(life(1))
    with ended_in_any_case([sys.executable, "-c", PARENT, here.url], {}) as parent:
        await until(lambda: asleep(here), 60)
        children = Started(parent, port=0).children()
        parent.kill()
    assert children
    await until(lambda: not any(map(alive, children)))


async def asleep(here: Place) -> bool:
    return bool(await here.ask("SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(3600)'"))
