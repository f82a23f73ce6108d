"""`command:python3 solve.py`: a program that runs in the sandbox, once for each evaluation.

It reads the prompt from standard input, or takes fields as arguments, and its output is the answer. Of the
host it sees the files that the options name, and those it can't write.
"""

from pathlib import Path, PurePosixPath

from pydantic import Field, field_validator

from domain.batch_spec import Options
from executor.contract import ExecutionEnvironment, TargetReply, TargetRequest
from executor.options import read_options
from executor.sandbox.job import SandboxJob
from executor.sandbox.reports import listening
from executor.sandbox.sandbox import Sandbox
from executor.targets.host_files import host_file
from executor.targets.programs import (
    ProgramOptions,
    Words,
    answered,
    arguments,
    fields_of,
    filled_in,
    words,
)


class CommandOptions(ProgramOptions):
    """The program, its input and its files."""

    command: str | Words
    files: dict[str, str] = Field(default_factory=dict)
    """Name in the working directory → file or directory, relative to where the batch was submitted."""

    @field_validator("command")
    @classmethod
    def _names_a_program(cls, command: str | list[str]) -> str | list[str]:
        words(command)
        return command

    @field_validator("files")
    @classmethod
    def _stay_in_the_working_directory(cls, files: dict[str, str]) -> dict[str, str]:
        for name in files:
            parts = PurePosixPath(name).parts
            if not parts or ".." in parts or parts[0] == "/" or "\0" in name:
                raise ValueError(f"{name!r} is not a name below the working directory")
        return files


class CommandTarget:
    """A program in the sandbox."""

    def __init__(
        self, options: CommandOptions, *, sandbox: Sandbox, workdir: Path, data_dir: str = ""
    ) -> None:
        self._options = options
        self._words = words(options.command)
        self._sandbox = sandbox
        self._workdir = workdir
        self._data_dir = data_dir

    async def call(self, request: TargetRequest) -> TargetReply:
        """Run it once."""
        async with listening() as reports:
            outcome = await self._sandbox.run(self._job(request, reports.directory))
            await reports.settle()
        return answered(outcome, reports, self._options)

    async def aclose(self) -> None:
        """Leave nothing behind: each run has taken all of its own along."""

    def _job(self, request: TargetRequest, reports: Path) -> SandboxJob:
        fields = fields_of(request)
        return SandboxJob(
            arguments(self._words, fields),
            seconds=request.timeout,
            stdin=filled_in(self._options.stdin, fields).encode(errors="replace"),
            files={
                name: host_file(self._workdir / path, data_dir=self._data_dir)
                for name, path in self._options.files.items()
            },
            env=self._options.env,
            limits=self._options.limits,
            reports=reports,
        )


class CommandType:
    """Creates command targets."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        read_options(CommandOptions, options, of="the command target")

    def make(self, options: Options, environment: ExecutionEnvironment) -> CommandTarget:
        """Make one."""
        read = read_options(CommandOptions, options, of="the command target")
        sandbox = Sandbox(allow_unsandboxed=environment.allow_unsandboxed, cgroup=environment.cgroup)
        return CommandTarget(
            read, sandbox=sandbox, workdir=Path(environment.workdir), data_dir=environment.data_dir
        )


COMMAND = CommandType()
