"""Reports of a sandboxed program: one JSON object per line, on a Unix socket of the run.

    {"type": "running", "target": "agent", "process": "7"}
    {"type": "progress", "done": 3, "of": 10, "note": "third file"}
    {"type": "result", "output": "42", "usage": {"input_tokens": 9, "output_tokens": 1}, "cost_usd": 0.01}

Each run has a socket in a directory of its own, so that no program can report for another. Input is
untrusted: a line that is not exactly one of these is counted and dropped, and one log line reports the
count. A program that writes too fast is throttled, one that writes too much is no longer read. The first
result wins.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from domain.ids import Name
from eventlog import payloads as p
from eventlog.tasks import end
from executor.sandbox.bubblewrap_options import REPORT_SOCKET
from executor.sandbox.run_directories import run_directory

logger = logging.getLogger(__name__)

MAX_LINE = 4 * 1024 * 1024
"""Bytes of a line: the longest output, even if JSON must escape all of it."""
MAX_BYTES = 4 * MAX_LINE
MAX_LINES = 10_000
LINES_A_SECOND = 200
MAX_CONNECTIONS = 4
_LAST_WORDS = 1.0
"""Seconds to read reports written before the program ended."""


@dataclass(frozen=True, slots=True, config=p.STRICT)
class RunningReport:
    """The program has begun."""

    type: Literal["running"]
    target: Name | None = None
    process: str = Field(default="", max_length=200)


@dataclass(frozen=True, slots=True, config=p.STRICT)
class ProgressReport:
    """The program is so far."""

    type: Literal["progress"]
    done: p.Count
    of: p.Count
    note: str = Field(default="", max_length=1_000)


@dataclass(frozen=True, slots=True, config=p.STRICT)
class ResultReport:
    """The program's answer, which replaces its standard output."""

    type: Literal["result"]
    output: p.Text
    usage: p.TokenUsage = p.TokenUsage()
    cost_usd: p.Amount = 0.0


Report = Annotated[RunningReport | ProgressReport | ResultReport, Field(discriminator="type")]
_REPORT: TypeAdapter[RunningReport | ProgressReport | ResultReport] = TypeAdapter(Report)


class ReportListener:
    """Listens to one run."""

    def __init__(
        self, directory: Path, on_progress: Callable[[ProgressReport], None] | None = None
    ) -> None:
        self.directory = directory
        self.result: ResultReport | None = None
        self.malformed = 0
        self._on_progress = on_progress
        self._lines = self._bytes = 0
        self._conversations: set[asyncio.Task[None]] = set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.setblocking(False)  # noqa: FBT003 - the library's own
        self._listener.bind(str(directory / REPORT_SOCKET))
        # Every process that reaches the socket may use it, with any user id: the sandbox controls who does.
        (directory / REPORT_SOCKET).chmod(0o666)
        self._listener.listen(MAX_CONNECTIONS)
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    async def settle(self) -> None:
        """Read the reports of a program that has ended; a connection may still be in the backlog."""
        self._accept()
        if self._conversations:
            await asyncio.wait(self._conversations, timeout=_LAST_WORDS)

    async def aclose(self) -> None:
        """Stop listening."""
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()
        await end(self._conversations.copy())

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            if len(self._conversations) >= MAX_CONNECTIONS:
                connection.close()
                continue
            task = asyncio.create_task(self._listen(connection))
            self._conversations.add(task)
            task.add_done_callback(self._conversations.discard)

    async def _listen(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MAX_LINE)
        try:
            while line := await reader.readline():
                if not self._has_room(line):
                    break
                self._take(line)
                if self._lines % LINES_A_SECOND == 0:
                    await asyncio.sleep(1)
        except (ValueError, ConnectionError) as error:  # a line too long, or cut off
            self._refuse(str(error))
        finally:
            writer.close()

    def _has_room(self, line: bytes) -> bool:
        self._lines += 1
        self._bytes += len(line)
        return self._lines <= MAX_LINES and self._bytes <= MAX_BYTES

    def _take(self, line: bytes) -> None:
        try:
            report = _REPORT.validate_json(line, strict=True)
        except ValidationError as error:
            self._refuse(error.errors(include_url=False, include_input=False)[0]["msg"])
            return
        match report:
            case ResultReport() if self.result is None:
                self.result = report
            case ResultReport():
                self._refuse("a second result")
            case ProgressReport() if self._on_progress:
                self._on_progress(report)
            case _:
                logger.debug("a program reported", extra={"report": report})

    def _refuse(self, reason: str) -> None:
        self.malformed += 1
        if self.malformed == 1:
            logger.warning("a report was left out, and so will others like it", extra={"reason": reason})


@asynccontextmanager
async def listening(
    on_progress: Callable[[ProgressReport], None] | None = None,
) -> AsyncIterator[ReportListener]:
    """Listen to one run, for as long as the block lasts."""
    with run_directory() as private:
        # The outer directory excludes the host's users, the inner one admits those of the sandbox.
        directory = private / "in"
        directory.mkdir()
        directory.chmod(0o755)
        reports = ReportListener(directory, on_progress)
        try:
            yield reports
        finally:
            await reports.aclose()
