"""One container from its start to its end, with bounds on time and output."""

import asyncio
from contextlib import aclosing
from time import monotonic
from typing import Any

from eventlog.tasks import end
from executor.sandbox.engine import ContainerEngine
from executor.sandbox.job import KilledBy, SandboxOutcome
from executor.sandbox.telemetry import counted

_KILLED = 128 + 9


class ContainerRun:
    """One container from its start to its end."""

    def __init__(self, engine: ContainerEngine, name: str, *, room: int) -> None:
        self._engine = engine
        self._name = name
        self._room = room
        self._heard = {1: bytearray(), 2: bytearray()}

    async def finish(self, stdin: bytes, seconds: float) -> SandboxOutcome:
        """Start it, feed it, hear it, and say how it ended; raises `Transient` where the engine is lost."""
        started = monotonic()
        killed_by: KilledBy | None = None
        exit_code = _KILLED
        try:
            async with asyncio.timeout(seconds):
                exit_code = await self._until_it_ends(stdin)
                if exit_code == _KILLED and await self._engine.ran_out_of_memory(self._name):
                    killed_by = "memory"
        except TimeoutError:
            killed_by = "time"
        except _TooMuchOutput:
            killed_by = "output"
        if killed_by in {"time", "output"}:
            await self._engine.kill(self._name)
        stdout, stderr = (bytes(heard) for heard in self._heard.values())
        return counted(SandboxOutcome(exit_code, stdout, stderr, killed_by, monotonic() - started))

    async def _until_it_ends(self, stdin: bytes) -> int:
        async with self._engine.stdin(self._name) as stream:
            await self._engine.start(self._name)
            feeding = asyncio.create_task(_feed(stream, stdin))
            try:
                await self._hear()
            finally:
                await end([feeding])
        return await self._engine.wait(self._name)

    async def _hear(self) -> None:
        async with aclosing(self._engine.output(self._name)) as frames:
            async for stream, piece in frames:
                self._heard[2 if stream == 2 else 1].extend(piece[: self._room])
                if len(piece) > self._room:
                    raise _TooMuchOutput
                self._room -= len(piece)


class _TooMuchOutput(Exception):  # noqa: N818 - what happened
    """The container wrote more than it may."""


async def _feed(stream: Any, stdin: bytes) -> None:  # noqa: ANN401 - httpx2 has no public type for it
    """Write the input and close: nobody must read what is offered."""
    try:
        await stream.write(stdin)
    finally:
        await stream.aclose()
