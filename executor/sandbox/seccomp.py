"""The seccomp filter: system calls that code in a sandbox may not use, as a BPF program.

Bubblewrap isolates files, processes and networks. The filter closes what is left: memory that no process
limit counts (System V segments, memory files, shared anonymous memory), address families that no network
namespace confines, and the parts of the kernel where most escapes were found (new namespaces, mounts,
io_uring, bpf, tracing, keys). A rejected call fails with EPERM or EAFNOSUPPORT, so that programs that can
do without it continue.
"""

import platform
import struct
from collections.abc import Iterable

_DENIED = {  # name: its number on x86-64, on arm64
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "unshare": (272, 97), "setns": (308, 268), "chroot": (161, 51), "pivot_root": (155, 41),
    "mount": (165, 40), "umount2": (166, 39), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "kcmp": (312, 272),
    "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "swapon": (167, 224), "reboot": (169, 142), "acct": (163, 89),
    "syslog": (103, 116),
    "kexec_file_load": (320, 294), "swapoff": (168, 225), "quotactl": (179, 60), "vhangup": (153, 58),
    "vmsplice": (278, 75), "io_setup": (206, 0), "migrate_pages": (256, 238), "move_pages": (279, 239),
}  # fmt: skip
_CLONE3 = 435
_CLONE, _MMAP = (56, 220), (9, 222)
_SOCKET, _SOCKETPAIR, _SETSOCKOPT = (41, 198), (53, 199), (54, 208)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the tables, and the kernel's name for the architecture."""

_AF_UNIX, _AF_INET = 1, 2
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
"""MAP_SHARED_VALIDATE has the bit of MAP_SHARED, MAP_PRIVATE has not."""

_NEW_NAMESPACES = 0x7E020000
_FOREIGN_NUMBERS = 0x40000000
"""The first number of the x32 system calls."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT, _FOURTH_ARGUMENT = 16, 24, 32, 40
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_IGNORE = _REFUSE
"""Error number 0: the call does nothing, and reports success."""
_SOL_SOCKET = 1
_BUFFER_SIZES = (7, 8, 32, 33)
"""SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE."""
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97


def filter_program(machine: str = platform.machine(), *, shared_memory: bool = False) -> bytes:
    """Write the filter for a machine; empty where its system calls have other numbers.

    `shared_memory` allows shared anonymous memory: only a memory cgroup counts it, since it outlives its
    mappings.
    """
    if machine not in _ARCHITECTURES:
        return b""
    column, architecture = _ARCHITECTURES[machine]
    return b"".join(
        [
            *_numbers(architecture),
            *_denials(sorted(numbers[column] for numbers in _DENIED.values())),
            *_namespace_flags(_CLONE[column]),
            *_address_families(_SOCKET[column]),
            *_address_families(_SOCKETPAIR[column]),
            *_buffer_sizes(_SETSOCKOPT[column]),
            *([] if shared_memory else _shared_anonymous(_MMAP[column])),
            _step(_RETURN, _ALLOW),
        ]
    )


def _numbers(architecture: int) -> Iterable[bytes]:
    """Refuse other architectures and other numberings, then load the number of the call."""
    yield _step(_LOAD, _ARCHITECTURE)
    yield _step(_EQUAL, architecture, when_true=1)
    yield _refused()
    yield _step(_LOAD, _NUMBER)
    yield _step(_AT_LEAST, _FOREIGN_NUMBERS, when_false=1)
    yield _refused()
    # C libraries fall back from clone3, whose flags a filter can't see, to clone.
    yield _step(_EQUAL, _CLONE3, when_false=1)
    yield _refused(_ENOSYS)


def _denials(denied: Iterable[int]) -> Iterable[bytes]:
    for number in denied:
        yield _step(_EQUAL, number, when_false=1)
        yield _refused()


def _namespace_flags(clone: int) -> Iterable[bytes]:
    yield _step(_EQUAL, clone, when_false=4)
    yield _step(_LOAD, _FIRST_ARGUMENT)
    yield _step(_ANY_BIT, _NEW_NAMESPACES, when_false=1)
    yield _refused()
    yield _step(_RETURN, _ALLOW)


def _address_families(number: int) -> Iterable[bytes]:
    """Allow AF_UNIX and AF_INET; others reach the hypervisor (AF_VSOCK) or rarely used kernel code."""
    yield _step(_EQUAL, number, when_false=5)
    yield _step(_LOAD, _FIRST_ARGUMENT)
    yield _step(_EQUAL, _AF_UNIX, when_true=2)
    yield _step(_EQUAL, _AF_INET, when_true=1)
    yield _refused(_EAFNOSUPPORT)
    yield _step(_RETURN, _ALLOW)


def _buffer_sizes(setsockopt: int) -> Iterable[bytes]:
    """Decide about `setsockopt`: the size of a buffer is a request, which the kernel may ignore.

    Memory in the buffers of sockets belongs to no process, so that their number must bound it.
    """
    yield _step(_EQUAL, setsockopt, when_false=5 + len(_BUFFER_SIZES))
    yield _step(_LOAD, _SECOND_ARGUMENT)
    yield _step(_EQUAL, _SOL_SOCKET, when_false=1 + len(_BUFFER_SIZES))
    yield _step(_LOAD, _THIRD_ARGUMENT)
    for left, option in zip(range(len(_BUFFER_SIZES), 0, -1), _BUFFER_SIZES, strict=True):
        yield _step(_EQUAL, option, when_true=left)
    yield _step(_RETURN, _ALLOW)
    yield _step(_RETURN, _IGNORE)


def _shared_anonymous(mmap: int) -> Iterable[bytes]:
    yield _step(_EQUAL, mmap, when_false=5)
    yield _step(_LOAD, _FOURTH_ARGUMENT)
    yield _step(_ANY_BIT, _MAP_ANONYMOUS, when_false=2)
    yield _step(_ANY_BIT, _MAP_SHARED, when_false=1)
    yield _refused()
    yield _step(_RETURN, _ALLOW)


def _refused(error: int = _EPERM) -> bytes:
    return _step(_RETURN, _REFUSE | error)


def _step(code: int, operand: int, *, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, when_true, when_false, operand)
