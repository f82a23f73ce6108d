"""Starts services as forks of the fork server, and follows them as `asyncio.subprocess` follows its own."""

import asyncio
import json
import os
import signal
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from subprocess import TimeoutExpired
from typing import Any

from scoreline.local.fork_server_launch import LaunchedServer

_ENDED_WITH_SERVER = -signal.SIGKILL
"""How a child ends when the server dies: see PR_SET_PDEATHSIG there."""


@dataclass(slots=True)
class ForkedProcess:
    """A process that the fork server has started."""

    pid: int
    pidfd: int
    stdin: int
    """The end of a pipe: the process ends by itself when it closes."""
    _code: "asyncio.Future[int]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it; None while it runs."""
        return self._code.result() if self._code.done() else None

    async def wait(self) -> int:
        """Wait for its end; returns the exit code."""
        return await asyncio.shield(self._code)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._signal(signal.SIGKILL)

    def ended(self, code: int) -> None:
        """Take in how it ended."""
        if not self._code.done():
            self._code.set_result(code)
            os.close(self.pidfd)
            os.close(self.stdin)

    def _signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            signal.pidfd_send_signal(self.pidfd, number)


@dataclass(slots=True)
class _Starting:
    """A request without an answer yet."""

    stdin: int
    started: "asyncio.Future[ForkedProcess]"


class ForkServer:
    """One fork server and the processes it has started."""

    def __init__(self, launched: LaunchedServer) -> None:
        self._process = launched.process
        self._connection = launched.connection
        self._starting = deque[_Starting]()
        self._running: dict[int, ForkedProcess] = {}
        self.is_lost = False
        """Whether it has died: another one is needed."""

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    @classmethod
    def following(cls, launched: LaunchedServer) -> "ForkServer":
        """Follow a server in this event loop; it may import still, and its first requests wait."""
        server = cls(launched.take())
        launched.connection.settimeout(0)
        asyncio.get_running_loop().add_reader(launched.connection, server._receive)
        return server

    async def start(
        self, argv: Sequence[str], environ: Mapping[str, str], *, log: int, ready: int, ready_name: str
    ) -> ForkedProcess:
        """Start a command of `scoreline`; raises `ConnectionError` if the server is gone."""
        theirs, ours = os.pipe()
        waiting = _Starting(ours, asyncio.get_running_loop().create_future())
        request = {"argv": list(argv), "environ": dict(environ), "ready_name": ready_name}
        document = _in_memory(json.dumps(request))
        try:
            socket.send_fds(self._connection, [b"start"], [document, theirs, log, ready])
        except OSError as error:
            os.close(ours)
            raise ConnectionError("the fork server has ended") from error
        finally:
            os.close(theirs)
            os.close(document)
        self._starting.append(waiting)
        return await asyncio.shield(waiting.started)

    async def stop(self) -> None:
        """End the server, whose children have ended."""
        self._lose()
        try:
            await asyncio.to_thread(self._process.wait, 5)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _receive(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._connection, 4_096, 1)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = b"", []
        if message:
            self._take(json.loads(message), descriptors)
        else:
            self._lose()

    def _take(self, answer: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        if "started" in answer:
            waiting = self._starting.popleft()
            process = ForkedProcess(answer["started"], descriptors[0], waiting.stdin)
            self._running[process.pid] = process
            if not waiting.started.cancelled():
                waiting.started.set_result(process)
        elif process_ended := self._running.pop(answer["ended"], None):
            process_ended.ended(answer["code"])

    def _lose(self) -> None:
        """Close the connection; what the server had started has died with it."""
        if self.is_lost:
            return
        self.is_lost = True
        asyncio.get_running_loop().remove_reader(self._connection)
        self._connection.close()
        for process in self._running.values():
            process.ended(_ENDED_WITH_SERVER)
        for waiting in self._starting:
            os.close(waiting.stdin)
            if not waiting.started.done():
                waiting.started.set_exception(ConnectionError("the fork server has ended"))


def _in_memory(text: str) -> int:
    descriptor = os.memfd_create("start-request", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8", errors="surrogateescape") as document:
        document.write(text)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
