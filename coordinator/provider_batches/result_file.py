"""A provider's result file, read within bounds: one line in memory, a minimum rate, a maximum of lines.

A line that is too long or no JSON object loses only its own result. Reading fails where the file is
truncated, at an incomplete last line, or arrives below the minimum rate.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from providers.bounded_replies import MAX_ANSWER
from providers.json_reader import UnreadableJson, read_json

FIRST_WAIT = 60.0
LEAST_RATE = 10_000
"""Minimum bytes per second, on average over the time spent waiting for them."""
MAX_LINES = 200_000
"""Twice as many as a provider batch has requests."""

logger = logging.getLogger(__name__)


class BrokenResultFile(ValueError):  # noqa: N818 - a property of the file
    """A result file that is truncated, too long or too slow."""


async def read_results(
    pieces: AsyncIterator[bytes], *, provider_id: str, longest: int = MAX_ANSWER
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield one object per line; raises `BrokenResultFile`."""
    count = unreadable = 0
    async for line, is_whole in _lines(_paced(pieces), longest):
        count += 1
        if count > MAX_LINES:
            raise BrokenResultFile(f"the results have more than {MAX_LINES:,} lines")
        result = _parsed(line)
        if result is not None:
            yield result
        elif not is_whole:
            raise BrokenResultFile("the results end in the middle of a line")
        elif line is None or line.strip():
            unreadable += 1
    if unreadable:
        found = {"provider_id": provider_id, "lines": unreadable}
        logger.warning(
            "results of a provider batch can't be read: their requests have no result", extra=found
        )


async def _paced(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the file's pieces while they arrive at the minimum rate; the reader's own time is excluded."""
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
    """Split into lines, and whether each is complete; None stands for a line that is too long."""
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
