"""A job of the sandbox, its limits, and its outcome."""

from collections.abc import Mapping
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from domain.batch_spec import STRICT
from eventlog.redaction import redact_tail

MEGABYTE = 1024 * 1024
_Amount = Annotated[int, Field(ge=1, le=1_000_000)]

KilledBy = Literal["time", "output", "memory", "processes", "disk", "signal"]
"""The limit that ended a run; `signal` is one that the program caused itself."""


@dataclass(frozen=True, slots=True, config=STRICT)
class SandboxLimits:
    """The limits of one run, for all of its processes together unless noted otherwise."""

    cpu_seconds: _Amount = 120
    """CPU seconds of each process; the job has its own wall-clock limit."""
    memory_mb: _Amount = 512
    """Memory of all kinds but the content of private files, sampled many times a second."""
    address_space_mb: _Amount = 1024
    """For each process, and never exceeded; raise it for runtimes that reserve more than they use."""
    processes: _Amount = 64
    """Threads count, too."""
    disk_mb: _Amount = 64
    """Each of the two private directories, which lie in memory; also the largest file."""
    files: _Amount = 16_384
    """Files and folders in the private directories together: even an empty one takes kernel memory."""
    open_files: _Amount = 256
    output_kb: _Amount = 512
    """Standard output and standard error together."""

    @property
    def output_bytes(self) -> int:
        """Bytes of output after which the run is killed."""
        return self.output_kb * 1024


@plain_dataclass(frozen=True, slots=True)
class SandboxJob:
    """A program to run once, in a world of its own."""

    argv: tuple[str, ...]
    seconds: float
    stdin: bytes = b""
    """Nothing means that standard input is at its end."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Name in the working directory → file or directory of the host, bound read-only."""
    texts: Mapping[str, bytes] = field(default_factory=dict)
    """Name in the working directory → content."""
    env: Mapping[str, str] = field(default_factory=dict)
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    reports: Path | None = None
    """The directory of a report socket, if the program may report."""
    channel: int | None = None
    """A descriptor of the executor that the program inherits under the same number."""

    @property
    def inherited(self) -> list[int]:
        """Descriptors that the program inherits in addition to its standard streams."""
        return [] if self.channel is None else [self.channel]


@plain_dataclass(frozen=True, slots=True)
class SandboxOutcome:
    """The outcome of a run."""

    exit_code: int
    """As a shell has it: 128 and the signal, where one ended the program."""
    stdout: bytes
    stderr: bytes
    killed_by: KilledBy | None
    seconds: float

    def tail(self, characters: int = 500) -> str:
        """The end of standard error, where programs usually report errors."""
        return redact_tail(self.stderr.decode(errors="replace").strip(), characters)
