"""The host that the programs attack: listeners, secrets, a victim, a bound folder, a terminal, a key."""

import ctypes
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).parents[2]
_ADD_KEY = {"x86_64": 248, "aarch64": 217}
_USER_KEYRING = -4
_TOOL = '#!/bin/sh\necho ESCAPED by a tool of its own\nshift\nexec /usr/bin/prlimit --core=-1 "$@"\n'


@dataclass(frozen=True)
class AttackedHost:
    """What the programs know of the host, and what must still be true of it afterwards."""

    facts: dict[str, Any]
    listeners: dict[str, socket.socket]
    victim: subprocess.Popen[bytes]
    terminal: int | None = None
    """The end of the executor's controlling terminal on which its output would appear."""
    cgroup: str = ""
    """The memory cgroup that is delegated to the executor, if any."""

    def damage(self) -> list[str]:
        """List every trace of an attack that succeeded."""
        shown = Path(self.facts["shown"])
        found = [f"reached: {name}" for name, each in self.listeners.items() if _was_reached(each)]
        if self.victim.poll() is not None:
            found.append("the victim is dead")
        if {path.name for path in shown.iterdir()} != {"file.txt", "link", "way", "tools"}:
            found.append("the bound folder has other entries")
        elif (shown / "file.txt").read_text() != "as it was":
            found.append("a bound file has another content")
        return [*found, *_typed(self.terminal)]


@contextmanager
def attacked_host(place: Path, *, terminal: int | None = None, cgroup: str = "") -> Iterator[AttackedHost]:
    """Prepare everything that a program may be after, in a folder that other users may enter."""
    facts = _facts(place)
    _furnish(place)
    _add_key(facts["key"])
    with ExitStack() as stack:
        listeners = {name: stack.enter_context(each) for name, each in _listeners(facts).items()}
        victim = stack.enter_context(_victim(facts))
        stack.callback(victim.kill)
        facts |= {
            "tcp": listeners["tcp"].getsockname()[1],
            "udp": listeners["udp"].getsockname()[1],
            "pid": victim.pid,
            "pids": [victim.pid, os.getpid()],
        }
        yield AttackedHost(facts, listeners, victim, terminal, cgroup)


def _facts(place: Path) -> dict[str, Any]:
    names = ("canary", "marker", "token", "abstract", "key")
    secret = str(place / "secret.txt")
    return {
        **{name: f"{name}-{uuid4().hex}" for name in names},
        "socket": str(place / "s"),
        "secret": secret,
        "secrets": ["/etc/shadow", "/etc/passwd", "/var/log", str(ROOT / "pyproject.toml"), secret],
        "shown": str(place / "shown"),
        "nodename": platform.node(),
        "base": Path(sys.base_prefix).parts[1],
    }


def _furnish(place: Path) -> None:
    place.chmod(0o755)
    (place / "secret.txt").write_text("secret")
    tools = place / "shown" / "tools"
    tools.mkdir(parents=True)
    (place / "shown" / "file.txt").write_text("as it was")
    (place / "shown" / "link").symlink_to(place / "secret.txt")
    (place / "shown" / "way").symlink_to(place)
    for name in ("prlimit", "setpriv"):
        (tools / name).write_text(_TOOL)
        (tools / name).chmod(0o755)


def _add_key(description: str) -> None:
    if number := _ADD_KEY.get(platform.machine()):
        libc = ctypes.CDLL(None, use_errno=True)
        libc.syscall(number, b"user", description.encode(), b"secret", 6, _USER_KEYRING)


def _listeners(facts: dict[str, Any]) -> dict[str, socket.socket]:
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind(("127.0.0.1", 0))
    datagrams.setblocking(False)
    return {
        "tcp": _listening(socket.AF_INET, ("127.0.0.1", 0)),
        "unix": _listening(socket.AF_UNIX, facts["socket"]),
        "abstract": _listening(socket.AF_UNIX, "\0" + facts["abstract"]),
        "udp": datagrams,
    }


def _listening(family: socket.AddressFamily, address: Any) -> socket.socket:
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen()
    listener.setblocking(False)
    return listener


def _was_reached(listener: socket.socket) -> bool:
    try:
        if listener.type is socket.SOCK_DGRAM:
            listener.recv(1)
        else:
            listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _victim(facts: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start a process with a secret in its environment and one in its command line."""
    command = ["/bin/sh", "-c", "read line", facts["marker"]]
    return subprocess.Popen(command, env={"SECRET": facts["canary"]}, stdin=subprocess.PIPE)


def controlling_terminal() -> int:
    """Give this process, which leads a session, a pseudo-terminal; returns the end that shows output."""
    shown, own = os.openpty()
    os.set_blocking(shown, False)
    os.close(os.open(os.ttyname(own), os.O_RDWR))
    return shown


def _typed(terminal: int | None) -> list[str]:
    if terminal is not None:
        with suppress(BlockingIOError):
            return [f"written to the terminal: {os.read(terminal, 1000)!r}"]
    return []
