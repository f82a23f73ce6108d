"""Streaming decompression of replies: in pieces of bounded size, stopped at a limit.

Only gzip and deflate are advertised (`ACCEPTED`). A reply in another coding is refused, whichever packages
are installed: no decoder runs whose memory this module does not bound. Codings may be nested; the limit
holds for the output of each of them, so a bomb inside a bomb stops as early as a plain one.
"""

import zlib
from collections.abc import Iterator

import httpx2

ACCEPTED = "gzip, deflate"
"""The value of `Accept-Encoding`."""
PIECE = 64 * 1024
MAX_CODINGS = 3
_GZIP = zlib.MAX_WBITS | 16
_WINDOW_BITS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}


class ReplyRefused(httpx2.TransportError):
    """A reply that is not read, or not read to its end; `kind` names the reason."""

    kind = "refused"


class ReplyTooLarge(ReplyRefused):
    """A reply beyond its limit, after decompression."""

    kind = "too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"the reply has more than {limit:,} bytes after decompression")
        self.limit = limit


class UnsupportedEncoding(ReplyRefused):
    """A content coding that was not advertised, or too many of them."""

    kind = "unsupported_encoding"

    def __init__(self, coding: str) -> None:
        super().__init__(f"the reply has the content coding {coding[:100]!r}; {ACCEPTED} are supported")


class Decompressor:
    """Undoes the content codings of one reply."""

    def __init__(self, encoding: str, limit: int) -> None:
        codings = [coding for each in encoding.lower().split(",") if (coding := each.strip())]
        codings = [coding for coding in codings if coding != "identity"]
        if len(codings) > MAX_CODINGS or not set(codings) <= _WINDOW_BITS.keys():
            raise UnsupportedEncoding(encoding)
        self._decoders = [_Inflater(_WINDOW_BITS[coding], limit) for coding in reversed(codings)]

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decompress the next bytes of the body; raises `ReplyTooLarge` or `httpx2.DecodingError`."""
        pieces: Iterator[bytes] = iter((data,))
        for decoder in self._decoders:
            pieces = decoder.inflate(pieces)
        return pieces

    def check_end(self) -> None:
        """Refuse a body that ended before its codings did; raises `httpx2.DecodingError`."""
        if not all(decoder.is_complete for decoder in self._decoders):
            raise httpx2.DecodingError("the compressed body ended before its end marker")


class _Inflater:
    """One zlib stream."""

    def __init__(self, window_bits: int, limit: int) -> None:
        self._stream = zlib.decompressobj(window_bits)
        self._may_be_raw = window_bits == zlib.MAX_WBITS
        self._limit = limit
        self._size = 0
        self._has_begun = False

    @property
    def is_complete(self) -> bool:
        """Whether the stream has reached its end marker, or is empty."""
        return self._stream.eof or not self._has_begun

    def inflate(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield from self._feed(piece)

    def _feed(self, data: bytes) -> Iterator[bytes]:
        # zlib keeps whatever follows the end of a stream: bytes after it are dropped instead.
        # A full piece may have more behind it, though all of the input was consumed.
        is_full = False
        while (data or is_full) and not self._stream.eof:
            self._has_begun = True
            inflated = self._step(data)
            data, is_full = self._stream.unconsumed_tail, len(inflated) == PIECE
            self._size += len(inflated)
            if self._size > self._limit:
                raise ReplyTooLarge(self._limit)
            if inflated:
                yield inflated

    def _step(self, data: bytes) -> bytes:
        try:
            inflated = self._stream.decompress(data, PIECE)
        except zlib.error as error:
            if not self._may_be_raw:
                raise httpx2.DecodingError(f"the body is not compressed as announced: {error}") from None
            # "deflate" without the zlib header, as some servers send it.
            self._stream, self._may_be_raw = zlib.decompressobj(-zlib.MAX_WBITS), False
            return self._step(data)
        self._may_be_raw = False
        return inflated
