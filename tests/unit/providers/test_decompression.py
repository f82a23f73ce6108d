"""Codings of replies are undone piece by piece, and within bounds."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.decompression import PIECE, Decompressor, ReplyTooLarge, UnsupportedEncoding
from tests.hostile_provider import deflate_bomb, gzip_bomb, nested_bomb
from tests.unit.providers.compressed import raw_deflate

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
}


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
    ("coding", "bomb"), [("gzip", gzip_bomb), ("deflate", deflate_bomb), ("gzip, gzip", nested_bomb)]
)
def test_a_bomb_is_stopped_at_the_limit(coding: str, bomb: Callable[[], bytes]) -> None:
    """What is decompressed is at most the limit and one piece, in little memory, also inside of another."""
    body, size = bomb(), 0
    tracemalloc.start()
    try:
        with pytest.raises(ReplyTooLarge):  # noqa: PT012 - counted as it comes
            for piece in Decompressor(coding, 1_000_000).feed(body):
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
