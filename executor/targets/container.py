"""`container:IMAGE`: a program in a container, a new one for each evaluation.

It has no network, no capabilities and no disk but a small private /tmp; the engine enforces its limits. Its
standard output is the answer, unless it reports a result on the socket in /run/scoreline, which exists if
the engine runs on the same host as the executor.

A container is created under a name chosen here, so that it can be removed even if the engine's response to
its creation was lost. It is removed however the run ends.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any
from uuid import uuid4

from pydantic import Field, field_validator

from domain.batch_spec import Options
from executor.contract import CallFault, ExecutionEnvironment, Permanent, TargetReply, TargetRequest
from executor.options import read_options
from executor.sandbox.bubblewrap_options import REPORT_DIRECTORY, REPORT_SOCKET, REPORT_VARIABLE
from executor.sandbox.container import ContainerRun
from executor.sandbox.engine import DEFAULT_HOST, ContainerEngine, EngineUnavailable, ImageMissing
from executor.sandbox.job import MEGABYTE
from executor.sandbox.reports import ReportListener, listening
from executor.targets.programs import (
    ProgramOptions,
    Words,
    answered,
    arguments,
    fields_of,
    filled_in,
    words,
)

logger = logging.getLogger(__name__)

LABEL = "scoreline.evaluation"
_UNPRIVILEGED_USER = "65534:65534"


class ContainerOptions(ProgramOptions):
    """The image, and the input of its program."""

    image: Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\s\x00-\x1f]+$")]
    command: str | Words | None = None
    """Instead of the image's own."""
    cpus: Annotated[float, Field(gt=0, le=1_024)] = 1.0
    pull: bool = False
    """Whether an image that is missing is fetched."""

    @field_validator("command")
    @classmethod
    def _names_a_program(cls, command: str | list[str] | None) -> str | list[str] | None:
        if command is not None:
            words(command)
        return command


class ContainerTarget:
    """A program in containers of one image."""

    def __init__(self, options: ContainerOptions, engine: ContainerEngine) -> None:
        self._options = options
        self._engine = engine
        self._words = words(options.command) if options.command is not None else ()
        self._removals: set[asyncio.Task[None]] = set()

    async def call(self, request: TargetRequest) -> TargetReply:
        """Run the program once, in a container that is removed afterwards."""
        stdin = filled_in(self._options.stdin, fields_of(request)).encode(errors="replace")
        async with listening() as reports:
            async with self._container(self._config(request, reports)) as name:
                run = ContainerRun(self._engine, name, output_bytes=self._options.limits.output_bytes)
                outcome = await run.finish(stdin, request.timeout)
            await reports.settle()
        return answered(outcome, reports, self._options)

    async def aclose(self) -> None:
        """Wait for the last removals."""
        await asyncio.gather(*self._removals)
        await self._engine.aclose()

    @asynccontextmanager
    async def _container(self, config: dict[str, Any]) -> AsyncIterator[str]:
        name = f"scoreline-{uuid4().hex}"
        try:
            await self._create(name, config)
            yield name
        except EngineUnavailable as error:
            raise Permanent("no_engine", str(error)) from error
        except BaseException:
            await self._removed(name)
            raise
        await self._removed(name)

    async def _create(self, name: str, config: dict[str, Any]) -> None:
        image = self._options.image
        try:
            await self._engine.create(name, config)
        except ImageMissing:
            if not self._options.pull:
                raise Permanent("image", f"the image {image} is missing: docker pull {image}") from None
            await self._engine.pull(image)
            await self._engine.create(name, config)

    async def _removed(self, name: str) -> None:
        """Remove a container even if the caller is cancelled again."""
        task = asyncio.create_task(self._remove(name))
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)
        await asyncio.shield(task)

    async def _remove(self, name: str) -> None:
        try:
            await self._engine.remove(name)
        except CallFault as fault:
            logger.warning("a container may be left", extra={"container": name, "error": str(fault)})

    def _config(self, request: TargetRequest, reports: ReportListener) -> dict[str, Any]:
        env = dict(self._options.env)
        binds = []
        if self._engine.is_local:
            env[REPORT_VARIABLE] = f"{REPORT_DIRECTORY}/{REPORT_SOCKET}"
            binds = [f"{reports.directory}:{REPORT_DIRECTORY}:ro"]
        command = {"Cmd": arguments(self._words, fields_of(request))} if self._words else {}
        return {
            **command,
            "Image": self._options.image,
            "User": _UNPRIVILEGED_USER,
            "Env": [f"{variable}={value}" for variable, value in env.items()],
            "Labels": {LABEL: request.evaluation_id},
            "NetworkDisabled": True,
            "AttachStdin": True,
            "OpenStdin": True,
            "StdinOnce": True,
            "HostConfig": {**self._isolation(), "Binds": binds},
        }

    def _isolation(self) -> dict[str, Any]:
        limits = self._options.limits
        memory, disk = limits.memory_mb * MEGABYTE, limits.disk_mb * MEGABYTE
        return {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Memory": memory,
            "MemorySwap": memory,
            "NanoCpus": int(self._options.cpus * 1e9),
            "PidsLimit": limits.processes,
            "ShmSize": disk,
            "Tmpfs": {"/tmp": f"rw,nosuid,nodev,size={disk},nr_inodes={limits.files},mode=1777"},  # noqa: S108 - the container's own
            "Ulimits": [
                _limit("cpu", limits.cpu_seconds),
                _limit("fsize", disk),
                _limit("nofile", limits.open_files),
                _limit("core", 0),
            ],
            # Output is read from the engine's log, which other drivers do not return.
            "LogConfig": {"Type": "json-file", "Config": {}},
        }


def _limit(name: str, value: int) -> dict[str, str | int]:
    return {"Name": name, "Soft": value, "Hard": value}


class ContainerType:
    """Creates container targets."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        _read(options)

    def make(self, options: Options, environment: ExecutionEnvironment) -> ContainerTarget:
        """Make one, for the engine that the environment names."""
        host = environment.environ.get("DOCKER_HOST") or DEFAULT_HOST
        return ContainerTarget(_read(options), ContainerEngine(host))


def _read(options: Options) -> ContainerOptions:
    return read_options(ContainerOptions, options, of="the container target")


CONTAINER = ContainerType()
