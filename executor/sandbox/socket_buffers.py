"""Memory in the socket buffers of a sandbox: it belongs to the kernel, and to the limit of no process.

A network namespace has its own socket statistics, which are read from outside through any of its processes.
TCP queues are counted in bytes, for the kernel enlarges their buffers by itself. Buffers of other sockets
have a fixed size, and no file lists how full they are: beyond a free allowance each socket counts as full.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

FREE_SOCKETS = 256
"""Sockets that do not count, as many as one process may have by default."""
FREE_TCP_SOCKETS = 8
"""Up to this number the TCP queues are not read: the kernel walks its whole table of connections for it."""
BUFFER_BYTES = 208 * 1024
"""The default size of a send buffer, which the seccomp filter lets no program change."""
_QUEUES = 4
"""The column of a socket's queues, `SENT:RECEIVED` in hexadecimal digits."""


def socket_buffers(network: Path) -> int:
    """Estimate the bytes in socket buffers from `/proc/PID/net`; 0 where the process has ended."""
    with suppress(OSError):
        sockets, tcp = _counts(network)
        fixed = max(0, sockets - tcp - FREE_SOCKETS) * BUFFER_BYTES
        return fixed + (sum(_queued(network)) if tcp > FREE_TCP_SOCKETS else 0)
    return 0


def _counts(network: Path) -> tuple[int, int]:
    """Count all sockets, and the TCP sockets among them."""
    lines = [*_lines(network / "sockstat"), *_lines_of_ipv6(network / "sockstat6")]
    counts = {words[0]: int(words[2]) for words in map(str.split, lines) if len(words) > 2}
    return counts.get("sockets:", 0), counts.get("TCP:", 0) + counts.get("TCP6:", 0)


def _queued(network: Path) -> Iterator[int]:
    for line in (*_lines(network / "tcp")[1:], *_lines_of_ipv6(network / "tcp6")[1:]):
        sent, received = line.split()[_QUEUES].split(":")
        yield int(sent, 16) + int(received, 16)


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def _lines_of_ipv6(file: Path) -> list[str]:
    """Read a file that a kernel without IPv6 does not have."""
    return _lines(file) if file.exists() else []
