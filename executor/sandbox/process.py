"""One process with bounds on time and output: whoever breaks one is killed, and the outcome says why.

Nothing is kept beyond the cap: what the pipes bring is cut where it goes too far. Cancelled or not, the
process is gone when `finish` is left. The loop calls a protocol for each piece, so a run costs no task and
no stream of its own.
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

_LAST_WORDS = 1.0
"""Seconds to read what is left in the pipes when a process is gone; one that ran off may hold them open."""


class SandboxProcess(asyncio.SubprocessProtocol):
    """A process that runs, and what it has said so far."""

    def __init__(self, *, room: int, namespace: PidNamespace | None) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.killed_by: KilledBy | None = None
        self._room = room
        self._namespace = namespace
        self._announced = namespace is None
        self._stdin: bytes | None = None
        self._speaking = {1, 2}
        self._exited, self._silent = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep hold of the process."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take in what it says, up to the cap; the first byte out of a sandbox is its first process's."""
        if fd == 1 and not self._announced:
            self._announced = True
            self._release()
            data = data[1:]
        heard = self.stdout if fd == 1 else self.stderr
        heard += data[: self._room]
        if len(data) > self._room:
            self.kill("output")
        self._room -= min(len(data), self._room)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's hook
        """Note that it has no more to say."""
        self._speaking.discard(fd)
        if not self._speaking:
            self._silent.set()

    def process_exited(self) -> None:
        """Note that it is gone."""
        self._exited.set()

    @property
    def exit_code(self) -> int:
        """How it ended, as a shell has it."""
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
        """Feed it, and hear it until it ends, of itself or by force."""
        timer = asyncio.get_running_loop().call_later(seconds, self.kill, "time")
        try:
            self._stdin = stdin
            self._release()
            await self._exited.wait()
            self.kill_rest()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_WORDS):
                    await self._silent.wait()
        finally:
            timer.cancel()
            await self.end()

    async def end(self) -> None:
        """Leave nothing of it."""
        self.kill()
        self._transport.close()
        await self._exited.wait()

    def _release(self) -> None:
        """Let the program start, once it can be killed and its input is known."""
        if not self._announced or self._stdin is None:
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
    """What is started, and with what in its hands."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    output_bytes: int
    has_input: bool
    workdir: str = "/"
    descriptors: Sequence[int] = ()


async def start(launch: ProcessSpec, namespace: PidNamespace | None = None) -> SandboxProcess:
    """Start a process in a session of its own; raises `Transient` where the system has no room for it."""
    starting = asyncio.create_task(_start(launch, namespace))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Asyncio would kill the one process it knows, and then wait for ever for those that this one began.
        child = await starting
        await child.end()
        raise
    except OSError as error:
        raise Transient("sandbox", f"no process could be started: {error.strerror}") from error


async def _start(launch: ProcessSpec, namespace: PidNamespace | None) -> SandboxProcess:
    _, child = await asyncio.get_running_loop().subprocess_exec(
        lambda: SandboxProcess(room=launch.output_bytes, namespace=namespace),
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
