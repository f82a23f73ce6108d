"""Bounds on replies: decompression, events, errors, JSON, hosts."""

import asyncio
import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.provider_batches import result_file
from coordinator.provider_batches.anthropic_batches import AnthropicBatches
from coordinator.provider_batches.provider import NoResponse, SubmissionRejected
from coordinator.provider_batches.result_file import BrokenResultFile, read_results
from executor.targets.http_replies import text_encoding
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
from providers.clients import anthropic_client
from providers.decompression import PIECE, Decompressor, ReplyTooLarge, UnsupportedEncoding
from providers.endpoint import ModelEndpoint
from providers.json_reader import MAX_CONTAINERS, UnreadableJson, read_json
from providers.table import PROVIDERS
from tests.hostile_provider import DEFLATE, GZIP, NESTED

BASE = "http://provider.test/v1"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
}


class Body(httpx2.AsyncByteStream):
    """A body in pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


def client(pieces: Iterable[bytes] = (), *, status: int = 200, **headers: str) -> httpx2.AsyncClient:
    """Return a bounded client whose every request has this reply."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, headers=named, stream=Body(pieces)))
    return httpx2.AsyncClient(transport=transport, **bounds(BASE))


# -- decompression


@given(
    data=st.binary(max_size=2_000),
    codings=st.lists(st.sampled_from([*ENCODERS]), max_size=3),
    cut=st.integers(min_value=1, max_value=50),
)
def test_codings_are_undone_however_the_body_is_cut(data: bytes, codings: list[str], cut: int) -> None:
    """Any nesting of the supported codings, in pieces of any size, gives the bytes that were encoded."""
    body = data
    for coding in codings:
        body = ENCODERS[coding](body)
    decompressor = Decompressor(", ".join(codings), limit=10_000)
    pieces = [body[start : start + cut] for start in range(0, len(body), cut)]
    assert b"".join(part for piece in pieces for part in decompressor.feed(piece)) == data
    decompressor.check_end()


def test_deflate_without_its_header_is_read() -> None:
    """Some servers omit it."""
    assert b"".join(Decompressor("deflate", 100).feed(raw_deflate(b"hello"))) == b"hello"


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 200])
@pytest.mark.parametrize("encode", [raw_deflate, zlib.compress])
def test_output_that_remains_after_a_full_piece_is_read(
    size: int, encode: Callable[[bytes], bytes]
) -> None:
    """The input can be consumed before all of its output has been taken."""
    decompressor = Decompressor("deflate", 10 * PIECE)
    assert sum(len(piece) for piece in decompressor.feed(encode(b"x" * size))) == size
    decompressor.check_end()


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


@pytest.mark.parametrize(("coding", "bomb"), [("gzip", GZIP), ("deflate", DEFLATE), ("gzip, gzip", NESTED)])
def test_a_bomb_is_stopped_at_the_limit(coding: str, bomb: bytes) -> None:
    """What is decompressed is at most the limit and one piece, in little memory, also inside of another."""
    tracemalloc.start()
    size = 0
    try:
        with pytest.raises(ReplyTooLarge):  # noqa: PT012 - counted as it comes
            for piece in Decompressor(coding, 1_000_000).feed(bomb):
                size += len(piece)
        assert size <= 1_000_000
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_bytes_after_the_end_of_a_gzip_stream_are_dropped() -> None:
    """zlib would keep them all."""
    decompressor = Decompressor("gzip", 1_000)
    whole = list(decompressor.feed(gzip.compress(b"end", mtime=0)))
    tracemalloc.start()
    for _ in range(100):
        assert not list(decompressor.feed(b"x" * 100_000))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert whole == [b"end"]


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, br", "gzip, gzip, gzip, gzip"])
def test_other_codings_are_refused(coding: str) -> None:
    """Whichever packages are installed, no decoder runs that this module does not bound."""
    with pytest.raises(UnsupportedEncoding):
        Decompressor(coding, 1_000)


# -- replies


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
    async with client([GZIP], status=529, **headers) as made:
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


@pytest.mark.parametrize(
    ("charset", "read_as"),
    [("latin-1", "iso8859-1"), ("UTF8", "utf-8"), ("zlib", "utf-8"), ("bz2", "utf-8"), ("idna", "utf-8"),
     ("hex", "utf-8"), ("unicode_escape", "utf-8"), ("no such", "utf-8"), ("a\0b", "utf-8"),
     (None, "utf-8")],
)  # fmt: skip
def test_a_charset_is_an_encoding_of_text(charset: str | None, read_as: str) -> None:
    """Python has codecs that decompress, under names that a charset may have."""
    assert text_encoding(charset) == read_as


# -- JSON


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 1_000_000,
        b"[" * 50_000,
        b'{"a":' * 50_000,
        b"[" + b"[]," * MAX_CONTAINERS + b"[]]",
        b"[" + b"1," * 1_000_001 + b"1]",
        b'["' + b'\\"' * 1_000_000 + b"," * 1_000_001,
        b"[1" + b"0" * 100_000 + b"]",
        b"{",
        f'["\u2200",{"[]," * MAX_CONTAINERS}[]]'.encode("utf-16-le"),
    ],
    ids=[
        *("deep", "less deep", "deep objects", "wide", "values", "an endless string", "digits", "no end"),
        "a byte of a character that is like a quote",
    ],
)
def test_json_beyond_the_bounds_is_refused_quickly(text: bytes) -> None:
    """Depth and number of values are bounded before objects are created."""
    started = time.process_time()
    with pytest.raises(UnreadableJson):
        read_json(text)
    assert time.process_time() - started < 2


def test_separators_inside_of_strings_do_not_count() -> None:
    """An answer may consist of commas and brackets."""
    answer = 'a "quoted\\" [,{' * 200_000
    assert read_json(json.dumps({"text": answer}).encode()) == {"text": answer}


# -- files of results


async def pieces_of(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def results_of(*pieces: bytes, longest: int = 100) -> list[Any]:
    return [each async for each in read_results(pieces_of(*pieces), provider_id="b", longest=longest)]


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line)), st.integers(1, 40))
async def test_a_bad_line_costs_its_own_result(garbage: list[bytes], cut: int) -> None:
    """Objects between lines of anything are read, however the file is cut into pieces."""
    lines = [line for bad in garbage for line in (bad, b'{"custom_id": "1"}')]
    lines += [b"x" * 101, b'{"x": "' + b"y" * 200 + b'"}', b"[1]", b"", b'{"custom_id": "2"}']
    body = b"".join(line + b"\n" for line in lines)
    found = await results_of(*(body[at : at + cut] for at in range(0, len(body), cut)))
    assert [each for each in found if each.get("custom_id") == "1"] == [{"custom_id": "1"}] * len(garbage)
    assert found[-1] == {"custom_id": "2"}


async def test_a_truncated_file_is_an_error() -> None:
    """Otherwise the missing results would count as unanswered, and be paid for again."""
    assert await results_of(b'{"a": 1}\n{"a"', b": 2}") == [{"a": 1}, {"a": 2}]
    for end in (b'{"a":', b"x" * 500):
        with pytest.raises(BrokenResultFile):
            await results_of(b'{"a": 1}\n', end)


async def test_a_slow_or_endless_file_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is bounded by the first wait and its size, its length by the expected number of lines."""

    async def dripping() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b" "
            await asyncio.sleep(0.01)

    monkeypatch.setattr(result_file, "FIRST_WAIT", 0.5)
    monkeypatch.setattr(result_file, "MAX_LINES", 1_000)
    with pytest.raises(BrokenResultFile, match="bytes a second"):
        async for _ in read_results(dripping(), provider_id="b"):
            pass
    with pytest.raises(BrokenResultFile, match="1,000 lines"):
        await results_of(*[b'{"a": 1}\n'] * 1_001)


async def test_a_large_file_takes_the_memory_of_a_line() -> None:
    """A hundred megabytes of results, and one line without end, are read in two."""

    async def large() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield (b'{"custom_id": "1", "x": "' + b"y" * 900 + b'"}\n') * 60
        for _ in range(700):
            yield b"z" * 65_536

    tracemalloc.start()
    count = 0
    try:
        with pytest.raises(BrokenResultFile):  # noqa: PT012 - counted as it comes
            async for _ in read_results(large(), provider_id="b", longest=1_000_000):
                count += 1
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
    assert count == 60_000


# -- provider batches


def batches(handler: Any) -> AnthropicBatches:
    access = ModelEndpoint(PROVIDERS["anthropic"], "m", "http://provider.test", "key-0123456789")
    return AnthropicBatches(access, anthropic_client(access, transport=httpx2.MockTransport(handler)))


async def test_a_redirected_submission_is_refused() -> None:
    """Nothing was created, and a retry would not help: the error names the host, which gets no request."""
    urls: list[str] = []

    def redirecting(request: httpx2.Request) -> httpx2.Response:
        urls.append(str(request.url))
        return httpx2.Response(307, headers={"Location": "http://127.0.0.1:9/steal?x=1"})

    made = batches(redirecting)
    with pytest.raises(SubmissionRejected, match=r"127\.0\.0\.1:9;") as caught:
        await made.create(pieces_of(b"{}"), length=2)
    assert not caught.value.is_passing
    with pytest.raises(SubmissionRejected):
        await made.retrieve("b")
    with pytest.raises(SubmissionRejected):
        [each async for each in made.results("b")]
    assert {httpx2.URL(url).host for url in urls} == {"provider.test"}


async def test_results_are_fetched_from_the_host_of_the_submission() -> None:
    """A results address on another host is not used."""
    urls: list[str] = []

    def answering(request: httpx2.Request) -> httpx2.Response:
        urls.append(str(request.url))
        return httpx2.Response(200, stream=Body([b'{"custom_id": "a", "result": 5}\nnot JSON\n']))

    [found] = [each async for each in batches(answering).results("b/../c")]
    assert (found.custom_id, urls) == (
        "a",
        ["http://provider.test/v1/messages/batches/b%2F..%2Fc/results"],
    )


async def test_an_endless_list_is_bounded() -> None:
    """A provider that always has another page does not block the coordinator."""
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    batch = {"id": "b", "created_at": "2030-01-01T00:00:00Z", "processing_status": "ended"}
    page = {
        "data": [{**batch, "request_counts": counts}],
        "has_more": True,
        "first_id": "b",
        "last_id": "b",
    }
    made = batches(lambda _: httpx2.Response(200, json=page))
    with pytest.raises(NoResponse):
        [each async for each in made.list(since=datetime(2020, 1, 1, tzinfo=UTC))]
