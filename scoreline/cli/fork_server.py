"""The fork server: a process that has imported every service and forks a copy for each one that is started.

Importing takes a Python process most of a second; a fork takes milliseconds. The server has one thread, no
event loop and no connection, so a fork copies nothing that two processes can't share. `ForkServer` starts
it and is the other end of its Unix socket. A request is a message with descriptors: a JSON document, stdin,
the log, the readiness pipe. The answer to it carries the pid and a pidfd; another message follows at
the end of the process, with its exit code.

A child dies with the server (PR_SET_PDEATHSIG), so the process manager follows every process that runs.
When the manager has died, its children end by themselves, as their standard input closes; the server waits
for that.
"""

import ctypes
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from eventlog.codec import build
from scoreline.cli.main import main as run_command

SERVICES = (
    *("coordinator.app", "executor.app", "storage_worker.app", "uvloop"),
    *("scoreline.local.storage_workers", "scoreline.observability.wiring"),
)
"""What services import when they start, beside the command line."""
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class StartRequest(NamedTuple):
    """A command to run in a fork, and the descriptors it gets."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    stdin: int
    log: int
    ready: int
    ready_name: str

    @classmethod
    def received(cls, descriptors: Sequence[int]) -> "StartRequest":
        """Read a request from its descriptors."""
        with os.fdopen(descriptors[0], encoding="utf-8", errors="surrogateescape") as document:
            fields = json.load(document)
        stdin, log, ready = descriptors[1:]
        return cls(fields["argv"], fields["environ"], stdin, log, ready, fields["ready_name"])

    def close(self) -> None:
        """Close the server's copies."""
        for descriptor in (self.stdin, self.log, self.ready):
            os.close(descriptor)


def serve(connection: socket.socket) -> Sequence[str]:
    """Fork on request; returns only in a child, with the command line that it is to run."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    children, is_open = set[int](), True
    while is_open or children:
        waits_for: list[int | socket.socket] = [woken, connection] if is_open else [woken]
        readable, _, _ = select.select(waits_for, [], [])
        if woken in readable:
            os.read(woken, 4_096)
            _report_ends(connection, children)
        if connection not in readable:
            continue
        message, descriptors, _, _ = socket.recv_fds(connection, 16, 4)
        is_open = bool(message)
        if not message:
            continue
        request = StartRequest.received(descriptors)
        server = os.getpid()
        if (pid := os.fork()) == 0:
            signal.set_wakeup_fd(-1)
            for descriptor in (woken, wake):
                os.close(descriptor)
            connection.close()
            _become(request, server)
            return request.argv
        request.close()
        children.add(pid)
        _report_start(connection, pid)
    os._exit(0)


def _report_start(connection: socket.socket, pid: int) -> None:
    pidfd = os.pidfd_open(pid)
    try:
        _send(connection, {"started": pid}, [pidfd])
    finally:
        os.close(pidfd)


def _report_ends(connection: socket.socket, children: set[int]) -> None:
    for pid in sorted(children):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            children.discard(pid)
            _send(connection, {"ended": pid, "code": os.waitstatus_to_exitcode(status)}, [])


def _send(connection: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # the manager has died: its children are ending
        socket.send_fds(connection, [json.dumps(message).encode()], descriptors)


def _become(request: StartRequest, server: int) -> None:
    """Turn a copy of the server into the process that was requested."""
    os.setsid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # it died before the line above
        os._exit(1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(request.stdin, 0)
    os.dup2(request.log, 1)
    os.dup2(request.log, 2)
    os.close(request.stdin)
    os.close(request.log)
    # The server's own streams may be of another kind of file: a pipe can't be sought in, as /dev/null can.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request.environ)
    os.environ[request.ready_name] = str(request.ready)
    random.seed()
    set_command_line([*sys.orig_argv[:2], "-m", "scoreline", *request.argv])


def set_command_line(words: Sequence[str]) -> None:
    """Show these words as this process' command line: in `ps` and in /proc."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    text = "\0".join(words).encode(errors="surrogateescape")[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def main() -> None:
    """Import the services, serve, and in a child run its command."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # what is imported is no garbage
    for module in SERVICES:
        importlib.import_module(module)
    build()
    gc.freeze()  # so that no collection in a child copies the pages of what is shared
    gc.enable()
    argv = serve(socket.socket(fileno=int(sys.argv[1])))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["scoreline", *argv]
    run_command()


if __name__ == "__main__":
    main()
