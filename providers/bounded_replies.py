"""Bounds on the replies of providers and HTTP targets: bytes, buffered bytes, hosts.

    client = httpx2.AsyncClient(follow_redirects=False, **bounds(base_url))

Hooks of the client do it, so that each reply is bounded before anything reads it: streamed or whole, an
answer or an error. A request goes to the origin of the client's base URL only. A redirect (3xx) is never
followed: it raises `Redirected`, which names the host and no more of the address. A body is decompressed
here, in pieces, and stopped at its limit; one that ends before its compression does is a broken reply:

    an answer             8 MiB; beyond 1 MiB it is one of four such replies of its client
    server-sent events    128 MiB, and 1 MiB from one blank line to the next; their text: `streams`
    a file of lines       no limit but that of its reader, which holds one line at a time
    an error              256 KiB, and what follows is dropped

The time that a reply takes is bounded by the deadline of the call.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

from providers.decompression import ACCEPTED, Decompressor, ReplyRefused, ReplyTooLarge

MIB = 1024 * 1024
MAX_ANSWER = 8 * MIB
MAX_EVENTS = 128 * MIB
MAX_EVENT = MIB
MAX_ERROR = 256 * 1024
UNLIMITED = 2**63
BUFFERED_FREELY = MIB
MAX_LARGE = 4
"""Replies of one client that may be buffered beyond `BUFFERED_FREELY` at the same time."""
EVENT_STREAM = "text/event-stream"
LINES = "application/binary"
"""The `Accept` header of a request for a file of lines, as the SDK sends it."""
_PORTS = {"http": 80, "https": 443}
_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")


class Redirected(ReplyRefused):
    """A 3xx reply."""

    kind = "redirect"

    def __init__(self, status: int, location: str) -> None:
        host = _host(location)
        where = f" to {host}" if host else ""
        super().__init__(f"answered {status}, a redirect{where}; redirects are not followed")


class ForeignHost(ReplyRefused):
    """A request to another host than the client's own."""

    kind = "redirect"

    def __init__(self, host: str) -> None:
        super().__init__(f"refers to {host}; requests go to the host of the base URL only")


def bounds(base_url: str) -> dict[str, Any]:
    """Return the arguments of an `httpx2.AsyncClient` that bound its replies."""
    own, limiter = _origin(httpx2.URL(base_url)), ReplyLimiter()

    async def check_host(request: httpx2.Request) -> None:
        request.headers["Accept-Encoding"] = ACCEPTED
        if _origin(request.url) != own:
            raise ForeignHost(request.url.netloc.decode(errors="replace").rpartition("@")[2])

    async def check_reply(response: httpx2.Response) -> None:
        if 300 <= response.status_code < 400:
            raise Redirected(response.status_code, response.headers.get("location", ""))
        limiter.bound(response, _limit_of(response))
        response.encoding = "utf-8"  # a charset names any codec of Python, decompressors too

    return {"event_hooks": {"request": [check_host], "response": [check_reply]}}


@dataclass(frozen=True, slots=True)
class ReplyLimit:
    """The limits of one reply."""

    size: int
    event: int = UNLIMITED
    """Maximum bytes from one blank line to the next."""
    is_buffered: bool = True
    is_cut: bool = False
    """Whether the rest is dropped in silence."""


_LIMITS = {
    EVENT_STREAM: ReplyLimit(MAX_EVENTS, MAX_EVENT, is_buffered=False),
    LINES: ReplyLimit(UNLIMITED, is_buffered=False),
}
"""By what `Accept` of the request has."""


def _limit_of(response: httpx2.Response) -> ReplyLimit:
    if response.status_code >= 400:
        return ReplyLimit(MAX_ERROR, is_cut=True)
    return _LIMITS.get(response.request.headers.get("accept", ""), ReplyLimit(MAX_ANSWER))


@dataclass(slots=True)
class ReplyLimiter:
    """Bounds the replies of one client."""

    large: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_LARGE))

    def bound(self, response: httpx2.Response, limit: ReplyLimit) -> None:
        """Put a bounded stream in the place of a reply's own; raises `UnsupportedEncoding`."""
        inner = response.stream
        assert isinstance(inner, httpx2.AsyncByteStream)  # of an asynchronous client  # noqa: S101
        decompressor = Decompressor(response.headers.get("content-encoding", ""), limit.size)
        response.headers.pop("content-encoding", None)  # done here
        response.stream = BoundedStream(inner, limit, decompressor, self.large)


class BoundedStream(httpx2.AsyncByteStream):
    """The decompressed body of one reply, up to its limit."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        limit: ReplyLimit,
        decompressor: Decompressor,
        large: asyncio.Semaphore,
    ) -> None:
        self._inner, self._limit, self._decompressor, self._large = inner, limit, decompressor, large
        self._size = 0
        self._since_blank, self._tail = 0, b""
        self._holds_large = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._inner:
                for piece in self._decompressor.feed(data):
                    yield await self._checked(piece)
                    # Other tasks go on between two pieces, though no read from the network does.
                    await asyncio.sleep(0)
            if not self._limit.is_cut:
                self._decompressor.check_end()
        except ReplyTooLarge:
            if not self._limit.is_cut:
                raise

    async def aclose(self) -> None:
        """Close the connection of a reply that was not read to its end."""
        if self._holds_large:
            self._holds_large = False
            self._large.release()
        await self._inner.aclose()

    async def _checked(self, piece: bytes) -> bytes:
        self._size += len(piece)
        if self._size > self._limit.size:
            raise ReplyTooLarge(self._limit.size)
        if self._limit.event < UNLIMITED:
            self._check_event(piece)
        elif self._limit.is_buffered and self._size > BUFFERED_FREELY and not self._holds_large:
            await self._large.acquire()
            self._holds_large = True
        return piece

    def _check_event(self, piece: bytes) -> None:
        seen = self._tail + piece
        blank = max(seen.rfind(each) + len(each) if each in seen else -1 for each in _BLANK_LINES)
        self._since_blank = len(seen) - blank if blank >= 0 else self._since_blank + len(piece)
        self._tail = seen[-3:]
        if self._since_blank > self._limit.event:
            raise ReplyTooLarge(self._limit.event)


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme)


def _host(location: str) -> str:
    """Return the host of an address, without credentials, path and query."""
    try:
        found = urlsplit(location).netloc.rpartition("@")[2]
    except ValueError:
        return ""
    return "".join(each for each in found if each.isprintable())[:200]
