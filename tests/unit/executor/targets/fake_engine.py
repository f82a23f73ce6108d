"""A container engine in a few lines: the part of the Docker Engine API that targets use, on a Unix socket.

An image is a coroutine: it is given its container, reads its input, writes, and returns an exit code.
"""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from eventlog.tasks import end

_REASONS = {101: "UPGRADED", 200: "OK", 201: "Created", 204: "No Content", 404: "Not Found"}


@dataclass(eq=False)
class Box:
    """One container."""

    config: dict[str, Any]
    stdin: asyncio.StreamReader = field(default_factory=asyncio.StreamReader)
    frames: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    process: asyncio.Task[int] | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    exit_code: int = 0
    oom_killed: bool = False
    is_deaf: bool = False
    """Whether the program reads none of its input, so that the engine has no room for more."""

    def write(self, text: bytes, stream: int = 1) -> None:
        """Write to standard output, or to standard error."""
        self.frames.put_nowait(struct.pack(">BxxxI", stream, len(text)) + text)

    async def run(self, image: "Image") -> int:
        """Run to the end, or until killed."""
        self.exit_code = 137
        try:
            self.exit_code = await image(self)
        finally:
            self.ended.set()
            self.frames.put_nowait(None)
        return self.exit_code


Image = Callable[[Box], Awaitable[int]]


class Request(NamedTuple):
    """One request, taken apart."""

    action: str
    name: str
    query: dict[str, str]
    body: bytes


@dataclass(eq=False)
class FakeEngine:
    """The engine, and what became of it."""

    path: Path
    images: dict[str, Image]
    in_registry: dict[str, Image] = field(default_factory=dict)
    boxes: dict[str, Box] = field(default_factory=dict)
    configs: list[dict[str, Any]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    connections: set[asyncio.StreamWriter] = field(default_factory=set)
    server: asyncio.Server | None = None

    @property
    def host(self) -> str:
        """Its address, as DOCKER_HOST has it."""
        return f"unix://{self.path}"

    async def vanish(self) -> None:
        """End in the middle of everything."""
        assert self.server
        self.server.close()
        for writer in self.connections.copy():
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self.connections.add(writer)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer(reader, writer):
                    await writer.drain()
        finally:
            self.connections.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await _request(reader)
        self.calls.append(request.action)
        match request.action:
            case "POST containers/create":
                return self._create(writer, request.query["name"], json.loads(request.body))
            case "POST images/create":
                return self._pull(writer, request.query["fromImage"], request.query.get("tag"))
            case _ if request.name not in self.boxes:
                return _reply(writer, 404, {"message": f"No such container: {request.name}"})
            case "DELETE containers":
                assert request.query["force"] == "1"
                await _killed(self.boxes.pop(request.name))
                return _reply(writer, 204, None)
            case "POST containers/attach":
                _reply(writer, 101, None)
                return await self._attach(reader, self.boxes[request.name])
            case action:
                return await self._act(action, self.boxes[request.name], writer)

    async def _act(self, action: str, box: Box, writer: asyncio.StreamWriter) -> bool:
        match action:
            case "POST containers/start":
                box.process = asyncio.create_task(box.run(self.images[box.config["Image"]]))
                return _reply(writer, 204, None)
            case "GET containers/logs":
                return await self._logs(writer, box)
            case "POST containers/wait":
                await box.ended.wait()
                return _reply(writer, 200, {"StatusCode": box.exit_code})
            case "GET containers/json":
                return _reply(writer, 200, {"State": {"OOMKilled": box.oom_killed}})
            case "POST containers/kill":
                return _reply(writer, 204 if await _killed(box) else 409, None)
            case _:
                raise AssertionError(action)

    def _create(self, writer: asyncio.StreamWriter, name: str, config: dict[str, Any]) -> bool:
        if config["Image"] not in self.images:
            return _reply(writer, 404, {"message": f"No such image: {config['Image']}"})
        self.boxes[name] = Box(config)
        self.configs.append(config)
        return _reply(writer, 201, {"Id": "0" * 64, "Warnings": []})

    def _pull(self, writer: asyncio.StreamWriter, image: str, tag: str | None) -> bool:
        if image not in self.in_registry:
            return _reply(writer, 200, {"error": f"pull access denied for {image}"})
        self.images[image] = self.in_registry[image]
        return _reply(writer, 200, {"status": f"Downloaded {image}:{tag}"})

    async def _attach(self, reader: asyncio.StreamReader, box: Box) -> bool:
        """Pass the input on, and close the connection when the container ends, read or not."""
        passing = asyncio.create_task(_pass_on(reader, box))
        ended = asyncio.create_task(box.ended.wait())
        await asyncio.wait([passing, ended], return_when=asyncio.FIRST_COMPLETED)
        await end([passing, ended])
        return False

    async def _logs(self, writer: asyncio.StreamWriter, box: Box) -> bool:
        kind = "application/vnd.docker.multiplexed-stream"
        writer.write(
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        while frame := await box.frames.get():
            # In odd pieces: a frame may arrive in any number of them.
            for piece in (frame[:3], frame[3:11], frame[11:]):
                if piece:
                    writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    await writer.drain()
        writer.write(b"0\r\n\r\n")
        return True


async def _pass_on(reader: asyncio.StreamReader, box: Box) -> None:
    while piece := await reader.read(65536):
        box.stdin.feed_data(piece)
        if box.is_deaf:
            await box.ended.wait()
    box.stdin.feed_eof()


async def _request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split()
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    url = urlsplit(target)
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    _, room, name, *action = url.path.strip("/").split("/")
    if name == "create":
        name, action = "", ["create"]
    if action == ["attach"]:
        assert headers["upgrade"] == "tcp"
    return Request(" ".join([method, "/".join([room, *action])]), name, query, body)


async def _killed(box: Box) -> bool:
    if box.process is None or box.process.done():
        return False
    box.process.cancel()
    await box.ended.wait()
    return True


def _reply(writer: asyncio.StreamWriter, status: int, content: dict[str, Any] | None) -> bool:
    body = b"" if content is None else json.dumps(content).encode()
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Conflict')}\r\n"
    if status == 101:
        head += (
            "Content-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
        )
    elif status == 204:
        head += "\r\n"
    else:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    return True


@asynccontextmanager
async def fake_engine(path: Path, images: dict[str, Image]) -> AsyncIterator[FakeEngine]:
    """An engine that has these images, for as long as the block lasts."""
    engine = FakeEngine(path, images)
    engine.server = await asyncio.start_unix_server(engine.serve, path)
    try:
        yield engine
    finally:
        await engine.vanish()
        for box in engine.boxes.values():
            await _killed(box)
