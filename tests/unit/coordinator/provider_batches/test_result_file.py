"""The file of a provider batch's results is read line by line, within bounds of memory and time."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.provider_batches import result_file
from coordinator.provider_batches.result_file import BrokenResultFile, read_results
from tests.unit.providers.compressed import pieces_of


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
