"""The quick self-test: a program in a sandbox attempts each violation and reports which succeeded."""

import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executor.sandbox import isolation_probe
from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.job import MEGABYTE, SandboxJob
from executor.sandbox.run_directories import probe_file
from executor.sandbox.seccomp import filter_program

_PROGRAM = "isolation-probe.py"
_SOURCE = Path(isolation_probe.__file__).read_bytes()
_SECONDS = 10
_SHELL = """
if command -v python3 >/dev/null; then python3 -I -S -B {program} "$1" || exit 1; fi
(: < /proc/1/environ) 2>/dev/null || exit 0
echo "programs could control the sandbox's first process: sysctl fs.suid_dumpable=0" >&2
exit 1
"""
_NAMESPACES, _FILTER = "network namespace", "seccomp filter"
_ENFORCED_BY = {
    "network": _NAMESPACES,
    "address families": _FILTER,
    "files": "mount namespace, read-only mounts",
    "environment": "cleared environment",
    "other processes": "pid namespace",
    "privileges": f"no capabilities, no_new_privs, {_FILTER}",
    "limits": "resource limits of the kernel, tmpfs size",
}
_FIRST_PROCESS = {
    PrivilegeMode.OWN_UID: f"user id of its own, {_FILTER}",
    PrivilegeMode.USER_NAMESPACE: f"pid 1 is not dumpable, {_FILTER}",
}
_ATTEMPTS = {
    "network": "connect to a TCP port and an abstract socket of the host",
    "address families": "open sockets of every family but AF_UNIX and AF_INET",
    "files": "read a file of the host, write outside of the working directory",
    "environment": "find variables of the executor",
    "other processes": "find processes of the host",
    "first process": "read and write the memory of pid 1, take its descriptors",
    "privileges": "hold capabilities, make a user namespace",
    "limits": "find a resource limit that is not set",
}


@dataclass(frozen=True, slots=True)
class IsolationCheck:
    """One attempt to break out of a sandbox or to exceed a limit, and its result."""

    name: str
    attempt: str
    enforced_by: str
    evidence: str = ""
    """Evidence of the violation; empty if the isolation held."""

    @property
    def held(self) -> bool:
        """Whether the attempt failed."""
        return not self.evidence


@contextmanager
def probing_job() -> Iterator[SandboxJob]:
    """Yield the job that attempts all violations, with the resources of the host that it must not reach."""
    with ExitStack() as stack:
        facts = json.dumps(_facts(stack))
        script = _SHELL.format(program=_PROGRAM)
        yield SandboxJob(("sh", "-c", script, "sh", facts), _SECONDS, texts={_PROGRAM: _SOURCE})


def read_checks(stdout: bytes, privilege_mode: PrivilegeMode) -> tuple[IsolationCheck, ...]:
    """Read what the program printed; nothing where the sandbox has no Python to run it."""
    found: dict[str, str] = {}
    with suppress(ValueError):
        found = json.loads(stdout[stdout.find(b"{") :])
    return tuple(
        IsolationCheck(name, _ATTEMPTS[name], enforced_by(name, privilege_mode), evidence)
        for name, evidence in found.items()
    )


def enforced_by(name: str, privilege_mode: PrivilegeMode) -> str:
    """Return the mechanism that prevents a violation."""
    return _FIRST_PROCESS[privilege_mode] if name == "first process" else _ENFORCED_BY[name]


def _facts(stack: ExitStack) -> dict[str, Any]:
    """Open a port, an abstract socket and a file that every user of the host could reach."""
    file = stack.enter_context(probe_file())
    listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    abstract = f"scoreline-{secrets.token_hex(8)}"
    local = stack.enter_context(socket.socket(socket.AF_UNIX))
    local.bind(f"\0{abstract}")
    local.listen()
    return {
        "port": listener.getsockname()[1],
        "abstract": abstract,
        "file": str(file),
        "has_filter": bool(filter_program()),
        "disk_bytes": SandboxJob((), 0).limits.disk_mb * MEGABYTE,
    }
