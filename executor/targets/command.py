"""`command:python3 solve.py`: a program that runs in the sandbox, once for each evaluation.

It reads the prompt from standard input, or takes fields as arguments, and its output is the answer. Of the
host it sees the files that the options name, and those it can't write.
"""

import os
import stat
from pathlib import Path, PurePosixPath

from pydantic import Field, field_validator

from executor.contract import Permanent, Question, Reply, Surroundings
from executor.options import read_options
from executor.sandbox.job import Job
from executor.sandbox.reports import listening
from executor.sandbox.sandbox import Sandbox
from executor.targets.programs import (
    ProgramOptions,
    Words,
    answered,
    arguments,
    fields_of,
    filled_in,
    words,
)
from taskqueue.spec import Options

_NEVER_WHOLE = frozenset({"/", "/boot", "/etc", "/home", "/opt", "/root", "/srv", "/tmp", "/var"})  # noqa: S108
_NEVER = ("/dev", "/proc", "/run", "/sys", "/var/run")
_OTHERS_MAY = {False: stat.S_IROTH, True: stat.S_IROTH | stat.S_IXOTH}


class CommandOptions(ProgramOptions):
    """What is run, and what it finds."""

    command: str | Words
    files: dict[str, str] = Field(default_factory=dict)
    """Name in the working directory → file or directory, as seen from where the batch was submitted."""

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


class Command:
    """A program in the sandbox."""

    def __init__(self, options: CommandOptions, *, sandbox: Sandbox, workdir: Path) -> None:
        self._options = options
        self._words = words(options.command)
        self._sandbox = sandbox
        self._workdir = workdir

    async def ask(self, question: Question) -> Reply:
        """Run it once."""
        async with listening() as reports:
            outcome = await self._sandbox.run(self._job(question, reports.directory))
            await reports.settle()
        return answered(outcome, reports, self._options)

    async def aclose(self) -> None:
        """Leave nothing behind: each run has taken all of its own along."""

    def _job(self, question: Question, reports: Path) -> Job:
        fields = fields_of(question)
        return Job(
            arguments(self._words, fields),
            seconds=question.timeout,
            stdin=filled_in(self._options.stdin, fields).encode(errors="replace"),
            files={name: host_file(self._workdir / path) for name, path in self._options.files.items()},
            env=self._options.env,
            limits=self._options.limits,
            reports=reports,
        )


def host_file(path: Path) -> Path:
    """Find a file that may be shown to a program; raises `Permanent` where it may not or can't be."""
    try:
        found = path.resolve(strict=True)
        mode = found.stat().st_mode
    except OSError as error:
        raise Permanent("files", f"{path} can't be given to the program: {error.strerror}") from None
    whole = str(found) in _NEVER_WHOLE or found == Path.home()
    if whole or any(found.is_relative_to(place) for place in _NEVER):
        raise Permanent("files", f"{found} is not given to programs: name what they need of it")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise Permanent("files", f"{found} is neither a file nor a directory")
    wanted = _OTHERS_MAY[stat.S_ISDIR(mode)]
    if os.geteuid() == 0 and mode & wanted != wanted:
        raise Permanent(
            "files", f"{found} can't be read by the program, which is not root: chmod o+rX {found}"
        )
    return found


class CommandType:
    """How such targets are made."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        read_options(CommandOptions, options, of="the command target")

    def make(self, options: Options, surroundings: Surroundings) -> Command:
        """Make one."""
        read = read_options(CommandOptions, options, of="the command target")
        sandbox = Sandbox(allow_unsandboxed=surroundings.allow_unsandboxed)
        return Command(read, sandbox=sandbox, workdir=Path(surroundings.workdir))


COMMAND = CommandType()
