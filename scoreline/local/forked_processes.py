"""Starts services as forks of the fork server, and follows them as `asyncio.subprocess` follows its own."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

SERVER = "scoreline.cli.fork_server"
"""The server's module; importing it here would import all services."""
COMMAND_LINE_ROOM = "-" * 2_048
"""The server's last argument: room for the command lines of its children."""
_ENDED_WITH_SERVER = -signal.SIGKILL
"""How a child ends when the server dies: see PR_SET_PDEATHSIG there."""


def can_fork(environ: Mapping[str, str]) -> bool:
    """Whether services can be forked: on Linux, where no library is to be loaded at their start."""
    return hasattr(os, "pidfd_open") and not any(name.startswith("LD_") for name in environ)


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

    def __init__(self, process: asyncio.subprocess.Process, connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._starting = deque[_Starting]()
        self._running: dict[int, ForkedProcess] = {}
        self.is_lost = False
        """Whether it has died: another one is needed."""

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    @classmethod
    async def started(cls, environ: Mapping[str, str], log_to: int) -> "ForkServer":
        """Start a server; it imports while its first requests wait in the socket."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", SERVER, str(theirs.fileno()), COMMAND_LINE_ROOM),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log_to,
                stderr=log_to,
                env=dict(environ),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.settimeout(0)
        server = cls(process, ours)
        asyncio.get_running_loop().add_reader(ours, server._receive)
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
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), 5)
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

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
