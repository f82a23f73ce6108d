"""One process with limits on time and output: exceeding one kills it, and the outcome names the limit.

Output beyond the limit is discarded. Cancelled or not, the process has ended when `finish` returns. The
event loop calls a protocol for each piece of output, so a run needs neither tasks nor streams.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE
from typing import cast

from executor.contract import Transient
from executor.sandbox.init import GO
from executor.sandbox.job import KilledBy
from executor.sandbox.pid_namespace import PidNamespace

_DRAIN_SECONDS = 1.0
"""Seconds to drain the pipes after a process has ended; a descendant may hold them open."""


class SandboxProcess(asyncio.SubprocessProtocol):
    """A running process, and its output so far."""

    def __init__(self, *, output_bytes: int, namespace: PidNamespace | None) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.killed_by: KilledBy | None = None
        self._output_left = output_bytes
        self._namespace = namespace
        self._has_started = namespace is None
        self._stdin: bytes | None = None
        self._open_pipes = {1, 2}
        self._exited, self._pipes_closed = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the process."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Store output up to the limit; the first byte from a sandbox is written by its first process."""
        if fd == 1 and not self._has_started:
            self._has_started = True
            self._release()
            data = data[1:]
        stream = self.stdout if fd == 1 else self.stderr
        stream += data[: self._output_left]
        if len(data) > self._output_left:
            self.kill("output")
        self._output_left -= min(len(data), self._output_left)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's hook
        """Record that a pipe is closed."""
        self._open_pipes.discard(fd)
        if not self._open_pipes:
            self._pipes_closed.set()

    def process_exited(self) -> None:
        """Record that the process has ended."""
        self._exited.set()

    @property
    def exit_code(self) -> int:
        """The exit code, as a shell reports it."""
        code = self._transport.get_returncode() or 0
        return code if code >= 0 else 128 - code

    def kill(self, reason: KilledBy | None = None) -> None:
        """End it and its whole group at once, and the sandbox it may have just begun to build."""
        if self._exited.is_set():
            return
        self.killed_by = self.killed_by or reason
        self.kill_rest()

    def kill_rest(self) -> None:
        """End every process of the sandbox and of the group, also after the process itself."""
        if self._namespace:
            self._namespace.kill(self._transport.get_pid())
        with suppress(ProcessLookupError):
            os.killpg(self._transport.get_pid(), signal.SIGKILL)

    async def finish(self, stdin: bytes, seconds: float) -> None:
        """Write the input, and read the output until the process ends or is killed."""
        timer = asyncio.get_running_loop().call_later(seconds, self.kill, "time")
        try:
            self._stdin = stdin
            self._release()
            await self._exited.wait()
            self.kill_rest()
            with suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self._pipes_closed.wait()
        finally:
            timer.cancel()
            await self.end()

    async def end(self) -> None:
        """Leave nothing of it."""
        self.kill()
        self._transport.close()
        await self._exited.wait()

    def _release(self) -> None:
        """Start the program, once it can be killed and its input is known."""
        if not self._has_started or self._stdin is None:
            return
        if self._namespace is None:
            self._feed(self._stdin)
        elif self._namespace.hold(self._transport.get_pid()) and self._namespace.join_cgroup():
            self._feed(GO + self._stdin)
        else:
            self.kill()

    def _feed(self, stdin: bytes) -> None:
        """Write the input and close it: a program that does not read it closes the pipe, and may."""
        if pipe := self._transport.get_pipe_transport(0):
            writer = cast("asyncio.WriteTransport", pipe)
            # uvloop raises RuntimeError for a pipe that the program has closed, asyncio an OSError.
            with suppress(OSError, RuntimeError):
                writer.write(stdin)
            writer.close()


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """The command of a process, its environment, limits and descriptors."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    output_bytes: int
    has_input: bool
    workdir: str = "/"
    descriptors: Sequence[int] = ()


async def start(launch: ProcessSpec, namespace: PidNamespace | None = None) -> SandboxProcess:
    """Start a process in a session of its own; raises `Transient` if the system can't create it."""
    starting = asyncio.create_task(_start(launch, namespace))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Asyncio would kill the one process it knows, and then wait forever for its descendants.
        child = await starting
        await child.end()
        raise
    except OSError as error:
        raise Transient("sandbox", f"no process could be started: {error.strerror}") from error


async def _start(launch: ProcessSpec, namespace: PidNamespace | None) -> SandboxProcess:
    _, child = await asyncio.get_running_loop().subprocess_exec(
        lambda: SandboxProcess(output_bytes=launch.output_bytes, namespace=namespace),
        *launch.argv,
        stdin=PIPE if launch.has_input else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=dict(launch.environ),
        cwd=launch.workdir,
        pass_fds=launch.descriptors,
        start_new_session=True,
    )
    return child
