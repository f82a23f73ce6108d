"""Proof that a program ran to its end: a sentinel that the executor releases only then.

An exit code proves nothing, since an answer can end its process before the tests. So each run has a secret
of its own, 32 random bytes in the memory of the executor: the parent of the sandbox, which no program in it
can reach. Nothing of it is in the program's memory, arguments, environment, files or descriptors. When the
last statement has run, the driver (`code_driver`) requests the sentinel with its ticket, and echoes it. The
ticket, the echo and nothing else on the channel are the proof.

The driver shares its process with the program, so a program that finds the ticket in the memory of its
process can forge its end; in the interpreter that runs the tests it could as well replace those.
docs/explanation/security.md has the limit.
"""

import asyncio
import fcntl
import resource
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from executor.evaluators.code_driver import SENTINEL_BYTES, TICKET_BYTES

_LOWEST_DESCRIPTOR = 8_192
"""Far above the limit of a sandbox (`open_files`), which spares descriptors that are inherited."""


class CompletionChannel:
    """The executor's end of one run's channel."""

    def __init__(self) -> None:
        self._own, program = socket.socketpair()
        with program:
            self._program = _moved_up(program)
        self._own.setblocking(False)  # noqa: FBT003 - the library's own
        self._ticket, self._sentinel = (
            secrets.token_bytes(TICKET_BYTES),
            secrets.token_bytes(SENTINEL_BYTES),
        )
        self._received = b""
        self._is_open = True
        self._own.send(self._ticket)
        asyncio.get_running_loop().add_reader(self._own, self._receive)

    @property
    def descriptor(self) -> int:
        """The program's end, for a process to inherit."""
        return self._program.fileno()

    def is_complete(self) -> bool:
        """Whether the sentinel was returned, and the protocol was not violated."""
        self._receive()
        return self._received == self._ticket + self._sentinel

    def close(self) -> None:
        """Close both ends."""
        asyncio.get_running_loop().remove_reader(self._own)
        self._own.close()
        self._program.close()

    def _receive(self) -> None:
        """Process received bytes; any protocol violation, an end of the stream included, is final."""
        try:
            while self._is_on_protocol():
                piece = self._own.recv(TICKET_BYTES + SENTINEL_BYTES)
                self._received += piece
                self._is_open = bool(piece)
                if self._received == self._ticket:
                    self._own.send(self._sentinel)
        except BlockingIOError:
            return
        except OSError:  # the program has shut the channel down
            self._is_open = False
        asyncio.get_running_loop().remove_reader(self._own)

    def _is_on_protocol(self) -> bool:
        return self._is_open and (self._ticket + self._sentinel).startswith(self._received)


def _moved_up(program: socket.socket) -> socket.socket:
    """Duplicate a socket to a high descriptor, which programs that close all up to their limit spare."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = min(_LOWEST_DESCRIPTOR, soft * 3 // 4)
    return socket.socket(fileno=fcntl.fcntl(program, fcntl.F_DUPFD_CLOEXEC, lowest))


@contextmanager
def completion_channel() -> Iterator[CompletionChannel]:
    """Open a channel for one run."""
    channel = CompletionChannel()
    try:
        yield channel
    finally:
        channel.close()
