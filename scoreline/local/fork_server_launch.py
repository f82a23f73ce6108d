"""Launches the fork server ahead of need: it imports the services while the command is still preparing.

The server's requests wait in its socket. A launched server that is not used is killed: it has no child, no
connection and nothing to finish.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

SERVER = "scoreline.cli.fork_server"
"""The server's module; importing it here would import all services."""
COMMAND_LINE_ROOM = "-" * 2_048
"""The server's last argument: room for the command lines of its children."""


def can_fork(environ: Mapping[str, str]) -> bool:
    """Whether services can be forked: on Linux, where no library is to be loaded at their start."""
    return hasattr(os, "pidfd_open") and not any(name.startswith("LD_") for name in environ)


@dataclass(slots=True)
class LaunchedServer:
    """A fork server that no event loop follows yet."""

    process: "subprocess.Popen[bytes]"
    connection: socket.socket
    is_taken: bool = False
    """Whether a process manager follows it, and ends it."""

    def take(self) -> "LaunchedServer":
        """Leave its end to the caller."""
        self.is_taken = True
        return self

    def discard(self) -> None:
        """End a server that was not taken."""
        if not self.is_taken:
            self.connection.close()
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


def launch(environ: Mapping[str, str], log_to: int = subprocess.DEVNULL) -> LaunchedServer:
    """Start a fork server in a session of its own, so that no terminal's signal reaches it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-P", "-m", SERVER, str(theirs.fileno()), COMMAND_LINE_ROOM],
            stdin=subprocess.DEVNULL,
            stdout=log_to,
            stderr=log_to,
            env=dict(environ),
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return LaunchedServer(process, ours)


@contextmanager
def launched(environ: Mapping[str, str], *, wanted: bool) -> Iterator[LaunchedServer | None]:
    """Lend a fork server that is starting; None where none is wanted, or services can't be forked."""
    if not wanted or not can_fork(environ):
        yield None
        return
    server = launch(environ)
    try:
        yield server
    finally:
        server.discard()
