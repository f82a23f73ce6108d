"""A provider on loopback whose every reply is an attack: /ATTACK/… chooses which.

Redirects name another server of this very test, on loopback too; `stolen` keeps what that one received.
Endless replies end with their connection.
"""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache

BOMB = 100_000_000
"""Bytes that a bomb decompresses to."""
_BLOCK = b" " * 1_000_000
_MESSAGE = {"role": "assistant", "content": "fine"}
_USAGE = {"prompt_tokens": 1, "completion_tokens": 1}
COMPLETION = {"choices": [{"finish_reason": "stop", "message": _MESSAGE}], "usage": _USAGE}
CHUNK = b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": null}]}\n\n'


def compressed(window_bits: int, block: bytes = _BLOCK, size: int = BOMB) -> bytes:
    """Compress a body of `size` bytes without holding it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, window_bits)
    pieces = [packer.compress(block) for _ in range(size // len(block))]
    return b"".join([*pieces, packer.flush()])


@cache
def gzip_bomb() -> bytes:
    """Compress once a test process, and only where a test sends it."""
    return compressed(zlib.MAX_WBITS | 16)


@cache
def deflate_bomb() -> bytes:
    """The same in the other coding."""
    return compressed(zlib.MAX_WBITS)


@cache
def nested_bomb() -> bytes:
    """A bomb inside of another."""
    return gzip.compress(gzip_bomb(), 9)


def texts_bomb() -> bytes:
    """A stream of events that are within their limit, and whose text is not."""
    return compressed(zlib.MAX_WBITS | 16, CHUNK.replace(b'"x"', b'"%b"' % (b"x" * 500_000)))


DEEP = b"[" * 1_000_000
WIDE = b"[" + b"[]," * 2_600_000 + b"[]]"


@dataclass
class HostileProvider:
    """The port of the provider, the port it redirects to, and what arrived there."""

    port: int = 0
    other: int = 0
    stolen: list[bytes] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def url(self, attack: str) -> str:
        """Name the address of one attack."""
        return f"http://127.0.0.1:{self.port}/{attack}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request with its attack."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                (line[15:] for line in head.lower().split("\r\n") if line[:15] == "content-length:"), "0"
            )
            await reader.readexactly(int(length))
            attack = head.split()[1].split("/")[1]
            self.asked.append(attack)
            await self._attack(attack, writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def steal(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep whatever is sent to the other server."""
        self.stolen.append(await reader.read(65_536))
        writer.close()

    async def _attack(self, attack: str, writer: asyncio.StreamWriter) -> None:
        name, _, code = attack.partition("-")
        match name:
            case "good":
                writer.write(reply(json.dumps(COMPLETION).encode()))
            case "redirect":
                where = f"Location: http://127.0.0.1:{self.other}/steal?prompt=yes"
                writer.write(reply(b"", where, status=int(code)))
            case _ if name in whole_replies():
                writer.write(whole_replies()[name])
            case _:
                await _without_end(writer, *ENDLESS[name])


def reply(body: bytes, *headers: str, status: int = 200) -> bytes:
    """Write a whole reply."""
    lines = [f"HTTP/1.1 {status} X", "Connection: close", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


_JSON = "Content-Type: application/json"
_EVENTS = "Content-Type: text/event-stream"


@cache
def whole_replies() -> dict[str, bytes]:
    """Write the attacks that are one reply."""
    return {
        "gzip": reply(gzip_bomb(), _JSON, "Content-Encoding: gzip"),
        "deflate": reply(deflate_bomb(), _JSON, "Content-Encoding: deflate"),
        "nested": reply(nested_bomb(), _JSON, "Content-Encoding: gzip, gzip"),
        "brotli": reply(b"\x8b" * 1_000, _JSON, "Content-Encoding: br"),
        "zstd": reply(b"\x28\xb5\x2f\xfd" * 1_000, _JSON, "Content-Encoding: zstd"),
        "error": reply(gzip_bomb(), _JSON, "Content-Encoding: gzip", status=500),
        "charset": reply(deflate_bomb(), "Content-Type: text/plain; charset=zlib", status=500),
        "deep": reply(DEEP, _JSON),
        "wide": reply(WIDE, _JSON),
        "events": reply(gzip_bomb(), _EVENTS, "Content-Encoding: gzip"),
        "texts": reply(texts_bomb(), _EVENTS, "Content-Encoding: gzip"),
        "deepevent": reply(b"data: " + DEEP + b"\n\n", _EVENTS),
        "headers": b"HTTP/1.1 200 X\r\nX: " + b"x" * 10_000_000,
    }


_CHUNKED = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS: dict[str, tuple[bytes, bytes, float]] = {
    "drip": (b"HTTP/1.1 200 X\r\nContent-Length: 1000000\r\n\r\n", b" ", 0.5),
    "slowhead": (b"HTTP/1.1 200 X\r\n", b"X-A: b\r\n", 0.5),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0.1),
    "stream": (_CHUNKED, b"%x\r\n%b\r\n" % (len(CHUNK) * 100, CHUNK * 100), 0.1),
}
"""How a reply begins, what follows without end, and after how many seconds each time."""


async def _without_end(writer: asyncio.StreamWriter, beginning: bytes, piece: bytes, every: float) -> None:
    writer.write(beginning)
    while not writer.is_closing():
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(every)


@asynccontextmanager
async def hostile_provider() -> AsyncIterator[HostileProvider]:
    """Serve attacks on two free ports of loopback."""
    made = HostileProvider()
    async with await _listening(made.serve) as provider, await _listening(made.steal) as other:
        made.port, made.other = (each.sockets[0].getsockname()[1] for each in (provider, other))
        yield made


async def _listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> asyncio.Server:
    return await asyncio.start_server(serve, "127.0.0.1", 0)
