"""A provider's file of results, read within bounds: one line in memory, a least rate, a most of lines.

A line that is too long or no JSON object costs its own result only. Reading fails where the file breaks
off: a last line without its end that can't be read, or bytes that come too slowly to ever be done.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from providers.bounded_replies import MAX_ANSWER
from providers.json_reader import UnreadableJson, read_json

FIRST_WAIT = 60.0
LEAST_RATE = 10_000
"""Bytes a second, on average, of the time that is spent waiting for them."""
MAX_LINES = 200_000
"""Twice as many as a provider batch has requests."""

logger = logging.getLogger(__name__)


class BrokenResultFile(ValueError):  # noqa: N818 - what the file is
    """A file of results that does not come to its end."""


async def read_results(
    pieces: AsyncIterator[bytes], *, provider_id: str, longest: int = MAX_ANSWER
) -> AsyncGenerator[dict[str, Any], None]:
    """Read one object a line; raises `BrokenResultFile`."""
    count = unreadable = 0
    async for line, is_whole in _lines(_paced(pieces), longest):
        count += 1
        if count > MAX_LINES:
            raise BrokenResultFile(f"the results have more than {MAX_LINES:,} lines")
        result = _parsed(line)
        if result is not None:
            yield result
        elif not is_whole:
            raise BrokenResultFile("the results broke off in the middle of a line")
        elif line is None or line.strip():
            unreadable += 1
    if unreadable:
        found = {"provider_id": provider_id, "lines": unreadable}
        logger.warning(
            "results of a provider batch can't be read: their requests have no result", extra=found
        )


async def _paced(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Pass a file on, as long as it comes at the least rate; the reader's own time does not count."""
    clock, waited, size = asyncio.get_running_loop().time, 0.0, 0
    while True:
        started = clock()
        try:
            async with asyncio.timeout(FIRST_WAIT + size / LEAST_RATE - waited):
                piece = await anext(pieces, None)
        except TimeoutError:
            raise BrokenResultFile(f"the results come at less than {LEAST_RATE:,} bytes a second") from None
        if piece is None:
            return
        waited += clock() - started
        size += len(piece)
        yield piece


async def _lines(
    pieces: AsyncIterator[bytes], longest: int
) -> AsyncGenerator[tuple[bytes | None, bool], None]:
    """Split into lines, and whether each had its end; None stands for one that is too long to be held."""
    held: bytearray | None = bytearray()
    async for piece in pieces:
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield _joined(held, end, longest), True
            held = bytearray()
        held = _extended(held, rest, longest)
    if held is None or held:
        yield (None if held is None else bytes(held)), False


def _joined(held: bytearray | None, end: bytes, longest: int) -> bytes | None:
    whole = _extended(held, end, longest)
    return None if whole is None else bytes(whole)


def _extended(held: bytearray | None, more: bytes, longest: int) -> bytearray | None:
    if held is None or len(held) + len(more) > longest:
        return None
    held += more
    return held


def _parsed(line: bytes | None) -> dict[str, Any] | None:
    try:
        found = read_json(line) if line else None
    except UnreadableJson:
        return None
    return found if isinstance(found, dict) else None
