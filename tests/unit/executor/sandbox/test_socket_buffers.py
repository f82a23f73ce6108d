"""Memory in the socket buffers of a network namespace, as its statistics show it."""

from pathlib import Path

from executor.sandbox.socket_buffers import BUFFER_BYTES, FREE_SOCKETS, FREE_TCP_SOCKETS, socket_buffers

HEADER = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
)
LINE = "   0: 0100007F:1F90 0100007F:A2C4 01 {:08X}:{:08X} 00:00000000 00000000     0        0 1 1\n"


def statistics(folder: Path, *, sockets: int, tcp: int, queues: tuple[int, int]) -> Path:
    """Write the files that `/proc/PID/net` has, with every TCP socket's queues of the same length."""
    (folder / "sockstat").write_text(
        f"sockets: used {sockets}\nTCP: inuse {tcp} orphan 0 tw 0 alloc 1 mem 9\n"
    )
    (folder / "sockstat6").write_text("TCP6: inuse 0\nFRAG6: inuse 0 memory 0\n")
    (folder / "tcp").write_text(HEADER + LINE.format(*queues) * tcp)
    (folder / "tcp6").write_text(HEADER)
    return folder


def test_bytes_in_tcp_queues_are_counted_in_both_directions(tmp_path: Path) -> None:
    """What was sent and not read lies in the kernel, whose buffers grow by themselves."""
    many = FREE_TCP_SOCKETS + 1
    found = statistics(tmp_path, sockets=many, tcp=many, queues=(1_000_000, 16))
    assert socket_buffers(found) == many * 1_000_016


def test_a_few_tcp_sockets_are_not_looked_at(tmp_path: Path) -> None:
    """The kernel walks its whole table for that, 20 times a second."""
    found = statistics(tmp_path, sockets=3, tcp=FREE_TCP_SOCKETS, queues=(1, 1))
    (tmp_path / "tcp").unlink()
    assert socket_buffers(found) == 0


def test_sockets_beyond_the_allowance_count_as_full(tmp_path: Path) -> None:
    """No file lists how full a Unix socket is."""
    found = statistics(tmp_path, sockets=FREE_SOCKETS + 3, tcp=0, queues=(0, 0))
    assert socket_buffers(found) == 3 * BUFFER_BYTES


def test_sockets_are_counted_by_a_kernel_without_ipv6(tmp_path: Path) -> None:
    """It has no files for IPv6, and its buffers must not count as empty for that."""
    many = FREE_SOCKETS + FREE_TCP_SOCKETS + 2
    found = statistics(tmp_path, sockets=many, tcp=FREE_TCP_SOCKETS + 1, queues=(1_000_000, 16))
    (tmp_path / "sockstat6").unlink()
    (tmp_path / "tcp6").unlink()
    assert socket_buffers(found) == BUFFER_BYTES + (FREE_TCP_SOCKETS + 1) * 1_000_016


def test_a_process_that_has_ended_holds_nothing(tmp_path: Path) -> None:
    """It may end between two samples."""
    assert socket_buffers(tmp_path / "gone") == 0


def test_the_files_of_this_kernel_can_be_read() -> None:
    """Their columns are where they are looked for."""
    assert socket_buffers(Path("/proc/self/net")) >= 0
