"""Bounds on replies: decompression, events, errors, JSON, hosts."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Iterable

import httpx2
import pytest

from providers.bounded_replies import (
    EVENT_STREAM,
    MAX_ANSWER,
    MAX_ERROR,
    MAX_EVENT,
    MAX_LARGE,
    ForeignHost,
    Redirected,
    bounds,
)
from providers.decompression import ReplyTooLarge
from tests.hostile_provider import gzip_bomb
from tests.unit.providers.compressed import Body, raw_deflate

BASE = "http://provider.test/v1"


def client(pieces: Iterable[bytes] = (), *, status: int = 200, **headers: str) -> httpx2.AsyncClient:
    """Return a bounded client whose every request has this reply."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, headers=named, stream=Body(pieces)))
    return httpx2.AsyncClient(transport=transport, **bounds(BASE))


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", gzip.compress(b"hello" * 99, mtime=0)), ("deflate", zlib.compress(b"hello" * 99)),
     ("deflate", raw_deflate(b"hello" * 99)),
     ("gzip, gzip", gzip.compress(gzip.compress(b"hello", mtime=0), mtime=0)),
     ("gzip, gzip", gzip.compress(gzip.compress(b"hello", mtime=0)[:-1], mtime=0) + b"x")],
)  # fmt: skip
async def test_a_compressed_body_without_its_end_is_broken(coding: str, body: bytes) -> None:
    """However little is missing, streamed or not; an empty body is whole, and an error keeps its status."""
    for cut in (1, 4, 9, len(body) - 1):
        for accept in ("application/json", EVENT_STREAM):
            async with client([body[:-cut]], content_encoding=coding) as made:
                with pytest.raises(httpx2.DecodingError, match=r"end marker"):
                    await made.get(BASE, headers={"Accept": accept})
    async with client([], content_encoding=coding) as made:
        assert (await made.get(BASE)).content == b""
    async with client([body[:-1]], status=529, content_encoding=coding) as made:
        assert (await made.get(BASE)).status_code == 529


async def test_only_supported_codings_are_advertised() -> None:
    """Also where a package for another one is installed."""
    async with client([b"{}"]) as made:
        response = await made.post(f"{BASE}/x", headers={"Accept-Encoding": "br"})
    assert response.request.headers["accept-encoding"] == "gzip, deflate"


async def test_an_answer_is_read_up_to_its_limit() -> None:
    """The limit itself passes, one byte more does not."""
    async with client([b"x" * MAX_ANSWER]) as made:
        assert len((await made.get(BASE)).content) == MAX_ANSWER
    async with client([b"x" * MAX_ANSWER, b"x"]) as made:
        with pytest.raises(ReplyTooLarge):
            await made.get(BASE)


async def test_an_error_is_cut_and_keeps_its_status() -> None:
    """An error status is classified the same, however long its body and whatever its charset."""
    headers = {"content_encoding": "gzip", "content_type": "text/plain; charset=zlib"}
    async with client([gzip_bomb()], status=529, **headers) as made:
        response = await made.get(BASE)
    assert (response.status_code, response.text.strip()) == (529, "")
    assert 0 < len(response.content) <= MAX_ERROR


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
async def test_events_are_bounded_one_by_one(end: bytes) -> None:
    """A stream may be far larger than an answer; what lies between two blank lines may not."""
    accept = {"Accept": EVENT_STREAM}
    event = b"data: " + b"x" * 100_000 + end
    async with client([event] * 200) as made:
        assert len((await made.get(BASE, headers=accept)).content) == 200 * len(event)
    lines = b"data: x\n" * (MAX_EVENT // 8 + 1)
    async with client([event, *(lines[at : at + 999] for at in range(0, len(lines), 999))]) as made:
        with pytest.raises(ReplyTooLarge):
            await made.get(BASE, headers=accept)


async def test_few_large_replies_are_held_at_the_same_time() -> None:
    """Beyond a mebibyte, all but four replies of a client wait until another one has been read."""
    begun, gate = [], asyncio.Event()

    class Large(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"x" * 2_000_000
            begun.append(1)
            await gate.wait()

    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, stream=Large()))
    async with httpx2.AsyncClient(transport=transport, **bounds(BASE)) as made:
        replies = [asyncio.create_task(made.get(BASE)) for _ in range(20)]
        for _ in range(500):
            await asyncio.sleep(0)
        assert len(begun) == MAX_LARGE
        gate.set()
        assert [len((await reply).content) for reply in replies] == [2_000_000] * 20


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308, 399])
@pytest.mark.parametrize("location", ["http://127.0.0.1:9/x?key=1", "//u:pw@127.0.0.1:9/y", ""])
async def test_no_redirect_is_followed(status: int, location: str) -> None:
    """Each 3xx is refused, even if the caller enables redirects; only the host is named."""
    async with client(status=status, location=location) as made:
        with pytest.raises(Redirected) as caught:
            await made.post(BASE, json={"prompt": "secret"}, follow_redirects=True)
    assert str(status) in str(caught.value)
    assert ("127.0.0.1:9" in str(caught.value)) == bool(location)
    assert not any(part in str(caught.value) for part in ("key", "pw", "/x", "/y"))


@pytest.mark.parametrize("location", ["http://[bad", "http://h:x/", "\x00", "x" * 9_000])
async def test_a_redirect_to_an_invalid_address_is_refused(location: str) -> None:
    """A location that can't be parsed is a permanent error."""
    async with client(status=302, location=location) as made:
        with pytest.raises(Redirected):
            await made.get(BASE)


@pytest.mark.parametrize(
    "url", ["https://provider.test/", "http://provider.test:8/", "http://other.test/v1"]
)
async def test_a_client_sends_to_its_own_origin_only(url: str) -> None:
    """An address from a reply, such as that of results, cannot lead to another host."""
    async with client([b"{}"]) as made:
        with pytest.raises(ForeignHost):
            await made.get(url)
