"""A client of the embedded Valkey server for the guardian, which imports no driver before it starts it."""

import socket
from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import unquote, urlsplit

import hiredis

_TIMEOUT = 5.0
_SCANNED = b"1000"


class ValkeyError(Exception):
    """The server refused a command, or closed the connection."""


class ValkeyClient:
    """One blocking connection to a `unix://` address."""

    def __init__(self, url: str) -> None:
        self._reader = hiredis.Reader()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(_TIMEOUT)
        self._address = unquote(urlsplit(url).path)

    def __enter__(self) -> Self:
        try:
            self._socket.connect(self._address)
        except OSError:
            self._socket.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, *words: bytes) -> Any:  # noqa: ANN401 - replies have many types
        """Send a command and return its reply; raises `ValkeyError`."""
        self._socket.sendall(hiredis.pack_command(words))  # type: ignore[arg-type]  # any number of words
        while (reply := self._reader.gets()) is False:
            received = self._socket.recv(65_536)
            if not received:
                raise ValkeyError("the connection was closed")
            self._reader.feed(received)
        if isinstance(reply, hiredis.ReplyError):
            raise ValkeyError(str(reply))
        return reply

    def run_id(self) -> str:
        """Return the id that the server has drawn at its start."""
        lines: list[str] = self.call(b"INFO", b"server").decode().splitlines()
        return next(line for line in lines if line.startswith("run_id:")).removeprefix("run_id:")

    def keys(self, pattern: str) -> Iterator[bytes]:
        """List the keys that match, by SCAN: one may come twice."""
        cursor = b"0"
        while True:
            cursor, found = self.call(b"SCAN", cursor, b"MATCH", pattern.encode(), b"COUNT", _SCANNED)
            yield from found
            if cursor == b"0":
                return
