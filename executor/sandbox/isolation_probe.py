"""Runs inside a sandbox and attempts to violate its isolation; prints a JSON object of what succeeded.

    python3 -I -S -B isolation-probe.py FACTS

FACTS is a JSON object about the host: what the program must not reach. An empty text means that the
isolation held. It runs under any Python 3 that the sandbox has, and imports the standard library only.
"""

import json
import os
import resource
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

FEW = 8
"""More processes than the sandbox has of its own."""
OWN_VARIABLES = {"PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"}
READ_ONLY = (
    "/",
    "/bin",
    "/dev",
    "/etc",
    "/home",
    "/proc/sys",
    "/root",
    "/run",
    "/usr",
    "/usr/local",
    "/var",
)
ALLOWED_FAMILIES = {socket.AF_UNIX, socket.AF_INET}
FAMILIES = range(1, 64)
KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
PIDFD_OPEN, PIDFD_GETFD, NEW_USER_NAMESPACE = 434, 438, 0x10000000
PROCESS_VM_WRITEV = {"x86_64": 311, "aarch64": 271}
LIMITS = ("RLIMIT_AS", "RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_NPROC")

Facts = Mapping[str, Any]


def _network(facts: Facts) -> Iterator[str]:
    for family, address in (
        (socket.AF_INET, ("127.0.0.1", facts["port"])),
        (socket.AF_UNIX, "\0" + facts["abstract"]),
    ):
        with socket.socket(family) as client:
            client.settimeout(2)
            yield from _through(f"connected to {address!r} of the host", client.connect, address)


def _address_families(facts: Facts) -> Iterator[str]:
    for family in FAMILIES if facts["has_filter"] else ():
        for kind in KINDS if family not in ALLOWED_FAMILIES else ():
            yield from _through(f"opened a socket of family {family}", socket.socket, family, kind)


def _files(facts: Facts) -> Iterator[str]:
    yield from _through(f"read {facts['file']} of the host", open, facts["file"])
    for folder in READ_ONLY:
        yield from _through(f"wrote to {folder}", open, os.path.join(folder, "scoreline-probe"), "w")  # noqa: PTH118 - any Python 3


def _environment(_: Facts) -> Iterator[str]:
    for name in sorted(set(os.environ) - OWN_VARIABLES):
        yield f"found the variable {name}"


def _processes(_: Facts) -> Iterator[str]:
    found = [name for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names, not paths
    if len(found) > FEW:
        yield f"found {len(found)} processes"


def _first_process(facts: Facts) -> Iterator[str]:
    yield from _through("read the environment of pid 1", _read, "/proc/1/environ")
    yield from _through("opened the memory of pid 1", open, "/proc/1/mem", "r+b", 0)
    yield from _through("opened a descriptor of pid 1", open, "/proc/1/fd/2", "wb")
    pidfd = _call(PIDFD_OPEN, 1, 0)
    if pidfd >= 0 and _call(PIDFD_GETFD, pidfd, 0, 0) >= 0:
        yield "took a descriptor of pid 1"
    number = PROCESS_VM_WRITEV.get(os.uname().machine)
    if facts["has_filter"] and number and _call(number, 1, 0, 0, 0, 0, 0) >= 0:
        yield "process_vm_writev on pid 1 is allowed"


def _privileges(facts: Facts) -> Iterator[str]:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - any Python 3
        status = {line.partition(":")[0]: line.partition(":")[2].strip() for line in file}
    wanted = {"CapEff": "0" * 16, "CapPrm": "0" * 16, "NoNewPrivs": "1"}
    wanted.update({"Seccomp": "2"} if facts["has_filter"] else {})
    for name, value in wanted.items():
        if status.get(name) != value:
            yield f"{name} is {status.get(name)}"
    if not os.getuid():
        yield "is root"
    if _library() and _library().unshare(NEW_USER_NAMESPACE) == 0:
        yield "made a user namespace"


def _settings(facts: Facts) -> Iterator[str]:
    for name in LIMITS:
        if resource.getrlimit(getattr(resource, name))[1] == resource.RLIM_INFINITY:
            yield f"{name} is unlimited"
    for folder in ("/tmp", "/dev/shm"):  # noqa: S108 - inside the sandbox
        size = os.statvfs(folder)
        if size.f_blocks * size.f_frsize > facts["disk_bytes"]:
            yield f"{folder} has no limit"


def _through(what: str, action: Callable[..., Any], *arguments: Any) -> Iterator[str]:  # noqa: ANN401 - whatever it takes
    """Return evidence if an action succeeded; empty if the kernel rejected it."""
    try:
        made = action(*arguments)
    except (OSError, ValueError):
        return
    if hasattr(made, "close"):
        made.close()
    yield what


def _read(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123 - any Python 3
        file.read()


def _call(*arguments: int) -> int:
    library = _library()
    return int(library.syscall(*arguments)) if library else -1


def _library() -> Any:  # noqa: ANN401 - functions of the C library
    try:
        import ctypes  # noqa: PLC0415 - not every Python has it
    except ImportError:  # a Python without it
        return None
    return ctypes.CDLL(None)


CHECKS: Mapping[str, Callable[[Facts], Iterator[str]]] = {
    "network": _network,
    "address families": _address_families,
    "files": _files,
    "environment": _environment,
    "other processes": _processes,
    "first process": _first_process,
    "privileges": _privileges,
    "limits": _settings,
}


def main(facts: Facts) -> None:
    """Attempt every violation."""
    sys.stdout.write(
        json.dumps({name: "; ".join(list(check(facts))[:3]) for name, check in CHECKS.items()})
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
