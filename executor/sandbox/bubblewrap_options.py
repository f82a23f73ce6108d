"""Isolation of untrusted code as arguments of bubblewrap: an allow-list of everything the sandbox contains.

The file system starts empty. Programs and libraries are bound read-only; the working directory is a small
private tmpfs; all else, the root included, is read-only. Sockets, secrets and data of the host are absent,
not hidden. Namespaces isolate processes, IPC and networks, abstract sockets included.

There are two privilege modes. An executor that runs as root gives each run a user id of its own: the kernel
does not limit the processes of root, not even within a user namespace. Any other executor uses a user
namespace, in which the limit counts the processes of the run only.
"""

import os
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePosixPath

from executor.sandbox.init import INIT
from executor.sandbox.job import MEGABYTE, SandboxJob, SandboxLimits

WORKDIR = "/tmp"  # noqa: S108 - inside the sandbox
PRIVATE_PLACES = ("/dev/shm", WORKDIR)  # noqa: S108 - inside the sandbox
"""Directories that a program may write: tmpfs, each of the size of the disk limit."""
REPORT_DIRECTORY = "/run/scoreline"
REPORT_SOCKET = "report.sock"
REPORT_VARIABLE = "SCORELINE_REPORT"
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_LINKER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")


SEARCH_PATH = f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin"
"""The search path for programs."""


class PrivilegeMode(StrEnum):
    """How the sandbox drops privileges."""

    OWN_UID = "a user id of its own"
    USER_NAMESPACE = "a user namespace"


def environment(job: SandboxJob, *, workdir: str, reports: str) -> dict[str, str]:
    """The environment of a program."""
    report = {REPORT_VARIABLE: f"{reports}/{REPORT_SOCKET}"} if job.reports else {}
    return {"PATH": SEARCH_PATH, "HOME": workdir, "TMPDIR": workdir, "LANG": "C.UTF-8", **job.env, **report}


def isolation_options(
    job: SandboxJob, privilege_mode: PrivilegeMode, texts: Mapping[str, int], init: int
) -> list[str]:
    """Bubblewrap's options for a job, whose texts and whose first process are read from open files."""
    return [
        *_namespaces(privilege_mode),
        # Variables of the job would reach programs that still have privileges: see `confined`.
        "--clearenv",
        *_programs(),
        # Executable and not readable: the kernel does not let a process of such a file be traced.
        *_open_directories(INIT),
        *("--perms", "0111", "--file", str(init), INIT),
        *_private_places(job.limits),
        *_given(job, texts),
        *("--chdir", WORKDIR, "--remount-ro", "/"),
    ]


def confined(job: SandboxJob, uid: int | None) -> list[str]:
    """The command inside the sandbox: limits, then another user, then variables, then the program."""
    command = [*limited(job.limits), f"--nproc={job.limits.processes}", "--"]
    if uid is not None:
        command += [
            tool("setpriv"),
            f"--reuid={uid}",
            f"--regid={uid}",
            "--clear-groups",
            "--inh-caps=-all",
            "--",
        ]
    variables = environment(job, workdir=WORKDIR, reports=REPORT_DIRECTORY)
    return [*command, *with_variables(job.argv, variables)]


def with_variables(argv: tuple[str, ...], environ: Mapping[str, str]) -> list[str]:
    """A command that runs another with these variables and no others."""
    # `env` takes every argument with an equals sign for a variable, up to the first without.
    program = ("sh", "-c", 'exec "$@"', "sh", *argv) if "=" in argv[0] else argv
    return [tool("env"), "-i", *(f"{name}={value}" for name, value in environ.items()), *program]


@cache
def tool(name: str) -> str:
    """The absolute path of a program of the system, so that no variable decides which one is run."""
    return shutil.which(name, path=os.defpath) or f"/usr/bin/{name}"


def limited(limits: SandboxLimits) -> list[str]:
    """The kernel's limits of each process."""
    disk = limits.disk_mb * MEGABYTE
    return [
        tool("prlimit"),
        f"--cpu={limits.cpu_seconds}:{limits.cpu_seconds + 1}",
        f"--as={limits.address_space_mb * MEGABYTE}",
        f"--fsize={disk}",
        f"--nofile={limits.open_files}",
        "--core=0",
        "--memlock=0",
        "--msgqueue=0",
    ]


def _namespaces(privilege_mode: PrivilegeMode) -> Iterator[str]:
    yield from ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    yield from (
        "--as-pid-1",
        "--die-with-parent",
        "--new-session",
        "--hostname",
        "sandbox",
        "--cap-drop",
        "ALL",
    )
    if privilege_mode is PrivilegeMode.OWN_UID:
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield from ("--unshare-user", "--uid", "65534", "--gid", "65534")


def _programs() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    yield from _open_directories("/etc/x")
    for file in _LINKER:
        yield from ("--ro-bind-try", file, file)
    if not Path(sys.base_prefix).is_relative_to("/usr"):
        yield from _open_directories(sys.base_prefix)
        yield from ("--ro-bind", os.path.realpath(sys.base_prefix), sys.base_prefix)


@cache
def _hidden_listings() -> tuple[str, ...]:
    """List files of /proc that a program could read because it has the user id of its executor.

    Keys belong to a user. The kernel's own tables are readable by root, also by one in a user namespace.
    """
    files = [path for path in Path("/proc").iterdir() if not path.name.isdigit() and path.is_file()]
    keys = {"keys", "key-users"}
    return tuple(str(path) for path in files if path.name in keys or not path.stat().st_mode & stat.S_IROTH)


def _private_places(limits: SandboxLimits) -> Iterator[str]:
    yield from ("--proc", "/proc")
    # These settings of the kernel check for root outside, which a process in a user namespace may be.
    for settings in ("/proc/sys", "/proc/sysrq-trigger", "/proc/pressure"):
        yield from ("--ro-bind-try", settings, settings)
    for listing in _hidden_listings():
        yield from ("--ro-bind", "/dev/null", listing)
    # /dev would else be a place to write without limit.
    yield from ("--dev", "/dev", "--remount-ro", "/dev")
    # A shared mapping of /dev/zero is memory that outlives its mapping. /dev/full reads as zeros, too, and
    # can't be mapped.
    yield from ("--dev-bind", "/dev/full", "/dev/zero")
    for place in PRIVATE_PLACES:
        yield from ("--perms", "1777", "--size", str(limits.disk_mb * MEGABYTE), "--tmpfs", place)


def _given(job: SandboxJob, texts: Mapping[str, int]) -> Iterator[str]:
    for name, source in job.files.items():
        yield from _open_directories(f"{WORKDIR}/{name}", below=WORKDIR)
        yield from ("--ro-bind", str(source), f"{WORKDIR}/{name}")
    for name, descriptor in texts.items():
        yield from ("--perms", "0444", "--file", str(descriptor), f"{WORKDIR}/{name}")
    if job.reports:
        yield from _open_directories(f"{REPORT_DIRECTORY}/x")
        yield from ("--ro-bind", str(job.reports), REPORT_DIRECTORY)


def _open_directories(path: str, *, below: str = "/") -> Iterator[str]:
    """Make the directories above a path: bubblewrap would make them for root's eyes only."""
    for parent in reversed(PurePosixPath(path).parents):
        if parent != PurePosixPath(below) and parent.is_relative_to(below):
            yield from ("--perms", "0755", "--dir", str(parent))
