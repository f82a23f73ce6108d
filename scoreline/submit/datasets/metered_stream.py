"""A stream that bounds how much a parser reads without yielding.

A streaming parser holds one token whole, so a token without end fills the memory before any check of the
record sees it. The reader of a format calls `progressed()` at each parser event; a parser that reads more
than `MAX_ROW_BYTES` between two events is stopped, whatever the token is: a string, a number, a key, a
comment, a directive.
"""

from typing import BinaryIO

from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.datasets.record import MAX_ROW_BYTES, size_text

READ_AHEAD = 128 * 1024
"""Bytes that a parser may hold beyond the token it is in."""


class MeteredStream:
    """Counts the bytes of a stream that were read since the parser's last event."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._unyielded = 0
        self.offset = 0

    def read(self, size: int) -> bytes:
        """Read up to so many bytes; raises `Unfit` where one token takes more than a record may."""
        if self._unyielded > MAX_ROW_BYTES + READ_AHEAD:
            raise Unfit(
                f"one value is longer than {size_text(MAX_ROW_BYTES)}, before byte {self.offset:,}: "
                "look for a missing quote or bracket, or shorten it"
            )
        found = self._stream.read(size)
        self._unyielded += len(found)
        self.offset += len(found)
        return found

    def progressed(self) -> None:
        """Start the count anew: the parser has yielded an event."""
        self._unyielded = 0
