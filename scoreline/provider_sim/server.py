"""HTTP/1.1 over asyncio streams: keeps connections alive, and aborts them on demand."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import IO
from urllib.parse import parse_qsl, unquote

import h11

from scoreline.provider_sim.http_messages import ConnectionAborted, HttpReply, HttpRequest

Handler = Callable[[HttpRequest], Awaitable[HttpReply]]

IN_MEMORY = 1 << 20
"""A larger body goes to a file."""
_READ = 1 << 16
_BACKLOG = 2048
_PHRASES = {status.value: status.phrase for status in HTTPStatus} | {529: "Overloaded"}
_RESET = struct.pack("ii", 1, 0)


class SimulatorServer:
    """Listens, and dispatches each request."""

    def __init__(self, handler: Handler, *, largest: Callable[[str], int]) -> None:
        self._handler = handler
        self._largest = largest
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._listening: asyncio.Server | None = None

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._open)

    async def listen(self, host: str, port: int) -> int:
        """Start listening; returns the port."""
        self._listening = await asyncio.start_server(self._serve, host, port, backlog=_BACKLOG)
        chosen: int = self._listening.sockets[0].getsockname()[1]
        return chosen

    def reset_all(self) -> None:
        """Abort all connections."""
        mine = asyncio.current_task()
        for task, writer in list(self._open.items()):
            if task is not mine:
                _break(writer)
                task.cancel()

    async def close(self) -> None:
        """Stop listening, and close open connections."""
        if self._listening is not None:
            self._listening.close()
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection is served by a task")
        self._open[task] = writer
        try:
            await _Connection(reader, writer).talk(self._handler, self._largest)
        except ConnectionAborted as wanted:
            if wanted.reset:
                _break(writer)
        except (ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass  # disconnected, invalid, or cancelled: there is no reply to send
        finally:
            del self._open[task]
            writer.close()


class _Connection:
    """One connection: requests are parsed by h11, replies are written directly."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=_READ)

    async def talk(self, handler: Handler, largest: Callable[[str], int]) -> None:
        """Answer until one side has had enough."""
        while isinstance(head := await self._next(), h11.Request):
            with SpooledTemporaryFile(max_size=IN_MEMORY) as body:
                request = await self._received(head, body, largest)
                await self._answer(await handler(request))
            if head.http_version != b"1.1" or request.headers.get("connection", "").lower() == "close":
                return
            self._begin_again()

    def _begin_again(self) -> None:
        """Wait for the next request, of which a part may have been received."""
        came, _ = self._h11.trailing_data
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=_READ)
        if came:
            self._h11.receive_data(came)

    async def _next(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            if self._h11.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self._writer.write(self._h11.send(go_on) or b"")
            self._h11.receive_data(await self._reader.read(_READ))
        return event

    async def _received(
        self, head: h11.Request, body: IO[bytes], largest: Callable[[str], int]
    ) -> HttpRequest:
        """Read all of it, even if it is too large: a client that still sends reads no reply."""
        target, _, query = head.target.decode("ascii").partition("?")
        path, size = unquote(target), 0
        most = largest(path)
        while isinstance(part := await self._next(), h11.Data):
            size += len(part.data)
            if size <= most:
                body.write(part.data)
        body.seek(0)
        headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        asked = dict(parse_qsl(query))
        return HttpRequest(head.method.decode(), path, asked, headers, body, too_large=size > most)

    async def _answer(self, reply: HttpReply) -> None:
        try:
            if isinstance(reply.body, bytes):
                self._writer.write(_head(reply, len(reply.body)) + reply.body)
            else:
                await self._piecemeal(reply, reply.body)
            await self._writer.drain()
        finally:
            reply.done()

    async def _piecemeal(self, reply: HttpReply, chunks: AsyncIterator[bytes]) -> None:
        self._writer.write(_head(reply, reply.length))
        try:
            async for chunk in chunks:
                self._writer.write(
                    chunk if reply.length is not None else b"%x\r\n%b\r\n" % (len(chunk), chunk)
                )
                await self._writer.drain()
        except ConnectionAborted:
            await _let_through(self._writer)
            raise
        if reply.length is None:
            self._writer.write(b"0\r\n\r\n")


def _head(reply: HttpReply, length: int | None) -> bytes:
    sized = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    lines = [f"HTTP/1.1 {reply.status} {_PHRASES.get(reply.status, 'Unknown')}", sized]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def _let_through(writer: asyncio.StreamWriter) -> None:
    """Wait until the written bytes have left: a reset drops what the client has not read yet."""
    await writer.drain()
    await asyncio.sleep(0.02)


def _break(writer: asyncio.StreamWriter) -> None:
    """Reset the connection: closing with no time to linger sends RST."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
