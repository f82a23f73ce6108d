"""A database with a storage worker that writes to it, and operations to read, alter and rebuild it.

async with place(postgres_url) as here:
    await here.store(life(1), life(2))
    await here.alter("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'evaluation-2'")
    assert await here.differences()
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from eventlog.keys import DEFAULT_SHARDS
from projections.database.connection import make_pool
from projections.store.postgres import PostgresStore
from projections.verification.rebuild import RebuildResult, rebuild
from projections.verification.verify import Difference, VerificationResult, verify
from storage_worker.storage import Storage
from tests.builders import BATCH, history
from tests.dumps import postgres_dump
from tests.storage_world import World

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A database, a storage worker that writes to it, and a connection to read and to alter."""

    url: str
    world: World
    worker: Storage
    conn: AsyncConnection[Any]

    async def ask(self, statement: str, *values: object) -> list[Row]:
        return await (await self.conn.execute(statement.encode(), values)).fetchall()

    async def alter(self, statement: str, *values: object) -> None:
        """Alter rows by hand, as an operator with psql could."""
        assert (await self.conn.execute(statement.encode(), values)).rowcount == 1

    async def store(self, *histories: Sequence[Any]) -> None:
        for events in histories:
            self.world.xadd(*events)
        await self.worker.store([events[0].evaluation_id for events in histories])

    async def verify(self, batch_id: str = BATCH) -> VerificationResult:
        async with await AsyncConnection.connect(self.url) as conn:
            return await verify(conn, batch_id, shards=DEFAULT_SHARDS)

    async def differences(self, batch_id: str = BATCH) -> list[Difference]:
        return (await self.verify(batch_id)).differences

    async def rebuild(self, batch_id: str = BATCH) -> RebuildResult:
        async with await AsyncConnection.connect(self.url) as conn:
            return await rebuild(conn, batch_id, shards=DEFAULT_SHARDS)

    async def dump(self) -> list[bytes]:
        return await postgres_dump(self.conn)


@asynccontextmanager
async def place(postgres_url: str) -> AsyncIterator[Place]:
    """Yield a migrated database with its storage worker."""
    async with AsyncExitStack() as stack:
        pool: AsyncConnectionPool = await stack.enter_async_context(make_pool(postgres_url, size=2))
        conn = await stack.enter_async_context(await AsyncConnection.connect(postgres_url, autocommit=True))
        world = World()
        yield Place(postgres_url, world, world.storage(tables=PostgresStore(pool)), conn)


def life(number: int) -> list[Any]:
    return history("queued provisioning running responded completed", evaluation_id=f"evaluation-{number}")
