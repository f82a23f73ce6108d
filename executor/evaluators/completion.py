"""Proof that a program ran to its end: a sentinel that the executor releases only then.

An exit code proves nothing, since an answer can end its process before the tests. So each run has a secret
of its own, 32 random bytes in the memory of the executor: the parent of the sandbox, which no program in it
can reach. Nothing of it is in the program's memory, arguments, environment, files or descriptors. When the
last statement has run, the driver (`code_driver`) requests the sentinel and echoes it. The request, the
echo and nothing else on the channel are the proof.

The channel is a descriptor of the program's own process, so a program that speaks the protocol can forge
its end; in the interpreter that runs the tests it could as well replace those. docs/security.md has the
limit.
"""

import asyncio
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from executor.evaluators.code_driver import FINISHED, SENTINEL_BYTES

_CLOSED = b"\0"
"""Stands for the end of the stream; no protocol message begins with it."""


class CompletionChannel:
    """The executor's end of one run's channel."""

    def __init__(self) -> None:
        self._own, self._program = socket.socketpair()
        self._own.setblocking(False)  # noqa: FBT003 - the library's own
        self._sentinel = secrets.token_bytes(SENTINEL_BYTES)
        self._received = b""
        asyncio.get_running_loop().add_reader(self._own, self._receive)

    @property
    def descriptor(self) -> int:
        """The program's end, for a process to inherit."""
        return self._program.fileno()

    def is_complete(self) -> bool:
        """Whether the sentinel came back, and nothing but the protocol was sent."""
        self._receive()
        return self._received == FINISHED + self._sentinel

    def close(self) -> None:
        """Close both ends."""
        asyncio.get_running_loop().remove_reader(self._own)
        self._own.close()
        self._program.close()

    def _receive(self) -> None:
        """Take in what was sent; whatever leaves the protocol, an end of the stream included, is final."""
        try:
            while self._is_on_protocol():
                piece = self._own.recv(len(FINISHED) + SENTINEL_BYTES)
                self._received += piece or _CLOSED
                if self._received == FINISHED:
                    self._own.send(self._sentinel)
        except BlockingIOError:
            return
        except OSError:  # the program has shut the channel down
            self._received = _CLOSED
        asyncio.get_running_loop().remove_reader(self._own)

    def _is_on_protocol(self) -> bool:
        whole = FINISHED + self._sentinel
        return whole.startswith(self._received) and self._received != whole


@contextmanager
def completion_channel() -> Iterator[CompletionChannel]:
    """Open a channel for one run."""
    channel = CompletionChannel()
    try:
        yield channel
    finally:
        channel.close()
