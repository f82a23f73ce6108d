"""The report socket accepts only valid reports, and is neither flooded nor blocked."""

import asyncio
import json
import logging
from typing import Any

import pytest

from executor.sandbox import reports as module
from executor.sandbox.reports import ProgressReport, ReportListener, listening
from tests.waiting import until


async def state(reports: ReportListener, *lines: Any) -> None:
    """Send lines as a program would, and close the connection."""
    _, writer = await asyncio.open_unix_connection(reports.directory / "report.sock")
    for line in lines:
        writer.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def test_a_result_is_received_even_if_the_program_is_gone() -> None:
    """Data in the socket when the program has ended still counts."""
    async with listening() as reports:
        usage = {"input_tokens": 3, "output_tokens": 4}
        await state(reports, {"type": "result", "output": "42", "usage": usage, "cost_usd": 0.5})
        await reports.settle()
        result = reports.result
    assert result
    assert (result.output, result.usage.total, result.cost_usd) == ("42", 7, 0.5)


async def test_progress_is_passed_on_in_order() -> None:
    """A subscriber receives every step."""
    steps: list[ProgressReport] = []
    async with listening(steps.append) as reports:
        await state(reports, {"type": "running", "target": "agent"}, *(_step(done) for done in range(3)))
        await reports.settle()
        assert [step.done for step in steps] == [0, 1, 2]
        assert reports.malformed == 0


def _step(done: int) -> dict[str, Any]:
    return {"type": "progress", "done": done, "of": 3, "note": "so far"}


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"not json\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        {"type": "completed", "verdict": "passed"},
        {"type": "result"},
        {"type": "result", "output": 42},
        {"type": "result", "output": "x", "evaluation_id": "another's"},
        {"type": "result", "output": "x", "cost_usd": -1},
        {"type": "result", "output": "x", "usage": {"input_tokens": "3"}},
        {"type": "progress", "done": -1, "of": 3},
    ],
    ids=str,
)
async def test_an_invalid_report_is_counted_and_skipped(line: Any) -> None:
    """The lines after it are read."""
    async with listening() as reports:
        await state(reports, line, {"type": "result", "output": "right"})
        await reports.settle()
        assert reports.malformed == 1
        assert reports.result
        assert reports.result.output == "right"


async def test_many_bad_lines_make_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """A program can't flood the log of its executor."""
    with caplog.at_level(logging.WARNING):
        async with listening() as reports:
            await state(reports, *[b"nonsense\n"] * 50)
            await reports.settle()
            assert reports.malformed == 50
    assert len(caplog.records) == 1


async def test_the_first_result_is_the_result() -> None:
    """A second one is ignored."""
    async with listening() as reports:
        await state(reports, *({"type": "result", "output": text} for text in ("first", "second")))
        await reports.settle()
        assert reports.result
        assert reports.result.output == "first"
        assert reports.malformed == 1


async def test_an_endless_line_is_truncated(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is buffered than the longest valid line."""
    monkeypatch.setattr(module, "MAX_LINE", 1_000)
    async with listening() as reports:
        await state(reports, b"x" * 10_000)
        await reports.settle()
        assert reports.malformed == 1


async def test_beyond_the_size_limit_reports_are_no_longer_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit even a valid line is ignored."""
    monkeypatch.setattr(module, "MAX_LINES", 3)
    async with listening() as reports:
        await state(reports, *[_step(1)] * 3, {"type": "result", "output": "too late"})
        await reports.settle()
        assert reports.result is None


async def test_a_fast_program_is_read_at_a_limited_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """After one second's quota of lines there is a pause."""
    steps: list[ProgressReport] = []
    monkeypatch.setattr(module, "LINES_A_SECOND", 5)
    async with listening(steps.append) as reports:
        await state(reports, *[_step(1)] * 50)
        await until(lambda: len(steps) == 5)
        await asyncio.sleep(0)
        assert len(steps) == 5


async def test_the_number_of_connections_is_limited() -> None:
    """A few may be open at a time; the others are closed."""
    async with listening() as reports:
        path = reports.directory / "report.sock"
        open_ones = [await asyncio.open_unix_connection(path) for _ in range(module.MAX_CONNECTIONS)]
        reader, writer = await asyncio.open_unix_connection(path)
        assert await reader.read() == b""
        for one in (writer, *(stream for _, stream in open_ones)):
            one.close()


async def test_the_report_directory_is_removed_after_the_run() -> None:
    """The report directory is removed after the run, and during the run only its owner can enter it."""
    async with listening() as reports:
        private = reports.directory.parent
        assert private.stat().st_mode & 0o777 == 0o700
    assert not private.exists()
