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

    def __init__(self, engine: ContainerEngine, name: str, *, output_bytes: int) -> None:
        self._engine = engine
        self._name = name
        self._output_left = output_bytes
        self._output = {1: bytearray(), 2: bytearray()}

    async def finish(self, stdin: bytes, seconds: float) -> SandboxOutcome:
        """Start the container, write its input, read its output, return the outcome; raises `Transient`."""
        started = monotonic()
        killed_by: KilledBy | None = None
        exit_code = _KILLED
        try:
            async with asyncio.timeout(seconds):
                exit_code = await self._run_to_end(stdin)
                if exit_code == _KILLED and await self._engine.ran_out_of_memory(self._name):
                    killed_by = "memory"
        except TimeoutError:
            killed_by = "time"
        except _TooMuchOutput:
            killed_by = "output"
        if killed_by in {"time", "output"}:
            await self._engine.kill(self._name)
        stdout, stderr = (bytes(stream) for stream in self._output.values())
        return counted(SandboxOutcome(exit_code, stdout, stderr, killed_by, monotonic() - started))

    async def _run_to_end(self, stdin: bytes) -> int:
        async with self._engine.stdin(self._name) as stream:
            await self._engine.start(self._name)
            feeding = asyncio.create_task(_feed(stream, stdin))
            try:
                await self._read_output()
            finally:
                await end([feeding])
        return await self._engine.wait(self._name)

    async def _read_output(self) -> None:
        async with aclosing(self._engine.output(self._name)) as frames:
            async for stream, piece in frames:
                self._output[2 if stream == 2 else 1].extend(piece[: self._output_left])
                if len(piece) > self._output_left:
                    raise _TooMuchOutput
                self._output_left -= len(piece)


class _TooMuchOutput(Exception):  # noqa: N818 - what happened
    """The container wrote more than it may."""


async def _feed(stream: Any, stdin: bytes) -> None:  # noqa: ANN401 - httpx2 has no public type for it
    """Write the input and close it: the program need not read it."""
    try:
        await stream.write(stdin)
    finally:
        await stream.aclose()
