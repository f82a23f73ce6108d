"""A link that can be broken: a Unix socket that passes everything on to another, as long as it is willing.

What it does to the bytes is its `manner`: one function that sees every chunk on its way and passes on
what it likes, later or never. `Cut` ends the connection there and then.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from random import Random

from eventlog.tasks import end

CHUNK = 65_536
COMMIT = b"COMMIT\x00"
"""How a commit looks on its way to Postgres."""


class Way(Enum):
    """Where a chunk is going."""

    THERE = "to the server"
    BACK = "to the client"


class Cut(Exception):  # noqa: N818 - what happens
    """The connection ends here; `last` still gets through."""

    def __init__(self, last: bytes = b"") -> None:
        super().__init__()
        self.last = last


@dataclass(slots=True, eq=False)
class Connection:
    """One client's connection; a manner may remember something about it."""

    marked: bool = False


Manner = Callable[[Connection, Way, bytes], Awaitable[bytes]]


async def faithfully(_connection: Connection, _way: Way, chunk: bytes) -> bytes:
    """Pass everything on."""
    return chunk


class Link:
    """One broken, or unbroken, way to a server."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path = path
        self.manner: Manner = faithfully
        self.open_to_new = True
        self.cuts = 0
        self._target = target
        self._serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until either side ends."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            if self.open_to_new:
                await self._join(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # cut, or no server: the client sees its connection end
        finally:
            self._serving.discard(task)
            writer.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_unix_connection(self._target)
        connection = Connection()
        pumps = [
            asyncio.create_task(self._pump(connection, Way.THERE, reader, there_writer)),
            asyncio.create_task(self._pump(connection, Way.BACK, there_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            there_writer.transport.abort()
            await end(pumps)

    async def _pump(
        self, connection: Connection, way: Way, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while chunk := await reader.read(CHUNK):
                writer.write(await self.manner(connection, way, chunk))
                await writer.drain()
        except Cut as cut:
            self.cuts += 1
            writer.write(cut.last)
            await writer.drain()

    async def cut(self) -> None:
        """End every connection; new ones are welcome."""
        self.cuts += len(self._serving)
        await end([task for task in self._serving if task is not asyncio.current_task()])

    @asynccontextmanager
    async def behaving(self, manner: Manner) -> AsyncIterator[None]:
        """Treat the bytes in this manner for a while, then end what hangs and be faithful again."""
        self.manner = manner
        try:
            yield
        finally:
            self.manner = faithfully
            await self.cut()

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Refuse all connections for a while."""
        self.open_to_new = False
        try:
            await self.cut()
            yield
        finally:
            self.open_to_new = True


@asynccontextmanager
async def link(path: Path, target: Path) -> AsyncIterator[Link]:
    """Open a link for as long as the block lasts."""
    opened = Link(path, target)
    server = await asyncio.start_unix_server(opened.serve, path)
    try:
        yield opened
    finally:
        server.close()
        await opened.cut()
        await server.wait_closed()


def slowly(rng: Random, longest: float) -> Manner:
    """Let every chunk take its time."""

    async def manner(_connection: Connection, _way: Way, chunk: bytes) -> bytes:
        await asyncio.sleep(rng.random() * longest)
        return chunk

    return manner


async def silently(_connection: Connection, _way: Way, _chunk: bytes) -> bytes:
    """Swallow everything: neither side learns that the other is gone."""
    return b""


async def deafly(_connection: Connection, way: Way, chunk: bytes) -> bytes:
    """Half closed: what is asked arrives and is done, the answers do not come back."""
    return chunk if way is Way.THERE else b""


def mid_reply(rng: Random, share: float) -> Manner:
    """Cut some replies in the middle."""

    async def manner(_connection: Connection, way: Way, chunk: bytes) -> bytes:
        if way is Way.BACK and rng.random() < share:
            raise Cut(chunk[: rng.randrange(len(chunk))])
        return chunk

    return manner


def without_commit_replies(rng: Random, share: float) -> Manner:
    """Cut connections at a commit: before it reaches the server, or before its reply reaches the client."""

    async def manner(connection: Connection, way: Way, chunk: bytes) -> bytes:
        if way is Way.BACK and connection.marked:
            raise Cut
        if way is Way.THERE and COMMIT in chunk and rng.random() < share:
            connection.marked = True
            if rng.random() < 0.3:
                raise Cut
        return chunk

    return manner
