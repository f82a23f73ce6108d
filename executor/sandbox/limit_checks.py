"""The long form of the self-test: programs that exceed each limit, in sandboxes of their own.

A limit holds where the kernel refused the excess, which the program reports by exit code REFUSED, or where
the executor ended the program.
"""

import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from executor.sandbox.isolation_checks import IsolationCheck
from executor.sandbox.job import KilledBy, SandboxJob, SandboxLimits, SandboxOutcome
from executor.sandbox.sandbox import Sandbox

REFUSED = 3
_PROGRAM = "excess.py"
_LONGEST = 10.0
"""Seconds after which a program whose limit does not hold is ended by the time limit."""
_PRELUDE = f"""
import mmap, os, sys, time
def refused(action, *arguments):
    try:
        action(*arguments)
    except (OSError, MemoryError):
        os._exit({REFUSED})
"""
_MEMORY = """
for _ in range(3):
    if not os.fork():
        break
held = bytearray(48 << 20)
time.sleep(60)
"""
_SHARED_MEMORY = """
def hold():
    held = mmap.mmap(-1, 256 << 20)
    for page in range(0, 256 << 20, 4096):
        held[page] = 1
    time.sleep(60)
refused(hold)
"""
_ADDRESS_SPACE = "refused(lambda: mmap.mmap(-1, 512 << 20, flags=mmap.MAP_PRIVATE))"
_PROCESSES = """
def start():
    for _ in range(64):
        if not os.fork():
            time.sleep(60)
    time.sleep(60)
refused(start)
"""
_DISK = """
def fill():
    for folder in ("/tmp", "/dev/shm"):
        for name in range(16):
            with open(f"{folder}/{name}", "wb") as file:
                file.write(bytes(1 << 20))
refused(fill)
"""
_INODES = """
def create():
    for name in range(20_000):
        os.close(os.open(f"/tmp/{name}", os.O_CREAT | os.O_WRONLY))
    time.sleep(60)
refused(create)
"""
_OPEN_FILES = "refused(lambda: [os.dup(0) for _ in range(1024)])"
_SURVIVOR = """
if not os.fork():
    os.setsid()
    if not os.fork():
        os.execvp("sleep", ["sleep", {marker!r}])
    os._exit(0)
time.sleep(0.2)
"""


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """A program that exceeds one limit, and how the limit shows."""

    attempt: str
    enforced_by: str
    program: str
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    seconds: float = _LONGEST
    killed_by: KilledBy | None = None
    """The mechanism that ends the program if the kernel does not reject the excess."""

    def evidence(self, outcome: SandboxOutcome) -> str:
        """Returns evidence that the limit did not hold; empty if it held."""
        if outcome.exit_code == REFUSED or (self.killed_by and outcome.killed_by == self.killed_by):
            return ""
        end = f"killed by {outcome.killed_by}" if outcome.killed_by else f"exit code {outcome.exit_code}"
        return f"not stopped by its limit: {end} after {outcome.seconds:.1f} s {outcome.tail(200)}".strip()


CGROUP, _SAMPLING = "memory cgroup", "sampling by the executor"
_COUNTED_BY_CGROUP = frozenset({"memory", "shared memory"})
EXCESSES: Mapping[str, LimitCheck] = {
    "memory": LimitCheck(
        "hold memory in several processes",
        _SAMPLING,
        _MEMORY,
        SandboxLimits(memory_mb=96),
        killed_by="memory",
    ),
    "shared memory": LimitCheck(
        "hold memory in shared mappings",
        f"seccomp filter, or {_SAMPLING}",
        _SHARED_MEMORY,
        SandboxLimits(memory_mb=64),
        killed_by="memory",
    ),
    "address space": LimitCheck(
        "reserve address space", "RLIMIT_AS", _ADDRESS_SPACE, SandboxLimits(address_space_mb=256)
    ),
    "processes": LimitCheck(
        "start processes",
        f"RLIMIT_NPROC, {_SAMPLING}",
        _PROCESSES,
        SandboxLimits(processes=8),
        killed_by="processes",
    ),
    "disk": LimitCheck(
        "fill the private folders", "tmpfs size, RLIMIT_FSIZE", _DISK, SandboxLimits(disk_mb=4)
    ),
    "inodes": LimitCheck(
        "create empty files", _SAMPLING, _INODES, SandboxLimits(files=1_000), killed_by="disk"
    ),
    "open files": LimitCheck("open files", "RLIMIT_NOFILE", _OPEN_FILES, SandboxLimits(open_files=64)),
    "time": LimitCheck(
        "sleep", "timer of the executor, SIGKILL to pid 1", "time.sleep(60)", seconds=0.5, killed_by="time"
    ),
    "processor time": LimitCheck(
        "use the processor",
        "RLIMIT_CPU",
        "while True: pass",
        SandboxLimits(cpu_seconds=1),
        killed_by="time",
    ),
    "output": LimitCheck(
        "print without end",
        "output cap of the executor",
        "while True: print('x' * 4096)",
        SandboxLimits(output_kb=64),
        killed_by="output",
    ),
}


async def check_limits(sandbox: Sandbox, *, has_cgroup: bool) -> AsyncIterator[IsolationCheck]:
    """Exceed each limit, one after the other."""
    for name, excess in EXCESSES.items():
        outcome = await sandbox.run(_job(excess.program, excess.limits, excess.seconds))
        enforced_by = CGROUP if has_cgroup and name in _COUNTED_BY_CGROUP else excess.enforced_by
        yield IsolationCheck(name, excess.attempt, enforced_by, excess.evidence(outcome))
    yield await _check_survivors(sandbox)


async def _check_survivors(sandbox: Sandbox) -> IsolationCheck:
    """Start a daemon, and search for it among the processes of the host after the run."""
    marker = f"{600 + secrets.randbelow(300)}.{secrets.randbelow(10**9):09}"
    await sandbox.run(_job(_SURVIVOR.format(marker=marker), SandboxLimits(), _LONGEST))
    evidence = "a process of the program is alive after its end" if _is_running(marker) else ""
    return IsolationCheck(
        "end of a run", "leave a daemon behind", "pid namespace, SIGKILL to pid 1", evidence
    )


def _job(program: str, limits: SandboxLimits, seconds: float) -> SandboxJob:
    text = (_PRELUDE + program).encode()
    return SandboxJob(
        ("python3", "-I", "-S", "-B", _PROGRAM), seconds, texts={_PROGRAM: text}, limits=limits
    )


def _is_running(marker: str) -> bool:
    return any(marker.encode() in _command_line(process) for process in Path("/proc").glob("[0-9]*"))


def _command_line(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # ended meanwhile
        return b""
