"""The filter of system calls, run by a small interpreter of the kernel's filter language."""

import struct

import pytest

from executor.sandbox.seccomp import filter_program

ALLOWED, EPERM, ENOSYS, IGNORED = 0x7FFF0000, 0x00050001, 0x00050026, 0x00050000
EAFNOSUPPORT = 0x00050061
X86, ARM = 0xC000003E, 0xC00000B7


def verdict(program: bytes, number: int, *others: int, architecture: int = X86, argument: int = 0) -> int:
    """What the kernel would answer to a system call with this first argument, and these others."""
    call = struct.pack("<iIQQ", number, architecture, 0, argument) + struct.pack(
        "<5Q", *others, *[0] * (5 - len(others))
    )
    steps = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = loaded = 0
    while True:
        code, when_true, when_false, operand = steps[at]
        match code:
            case 0x20:
                loaded, jump = struct.unpack_from("<I", call, operand)[0], 0
            case 0x15:
                jump = when_true if loaded == operand else when_false
            case 0x35:
                jump = when_true if loaded >= operand else when_false
            case 0x45:
                jump = when_true if loaded & operand else when_false
            case 0x06:
                return int(operand)
            case _:
                pytest.fail(f"no such instruction: {code:#x}")
        at += 1 + jump


@pytest.mark.parametrize("number", [0, 1, 2, 9, 57, 58, 59, 231, 302])
def test_ordinary_calls_are_allowed(number: int) -> None:
    """Reading, writing, mapping, forking and starting programs stay as they are."""
    assert verdict(filter_program("x86_64"), number) == ALLOWED


@pytest.mark.parametrize(
    "number", [29, 319, 272, 308, 165, 155, 101, 310, 321, 425, 430, 298, 250, 169, 438, 278, 206, 279]
)
def test_dangerous_calls_are_refused(number: int) -> None:
    """Namespaces, mounts, tracing, descriptors of others, uncounted memory and the like: EPERM."""
    assert verdict(filter_program("x86_64"), number) == EPERM


@pytest.mark.parametrize(("flags", "answer"), [(0x11, ALLOWED), (0x10000011, EPERM), (0x20011, EPERM)])
def test_a_process_may_be_made_but_no_namespace(flags: int, answer: int) -> None:
    """`clone` is judged by its flags."""
    assert verdict(filter_program("x86_64"), 56, argument=flags) == answer


@pytest.mark.parametrize(
    ("machine", "architecture", "number"), [("x86_64", X86, 54), ("aarch64", ARM, 208)]
)
def test_sizes_of_socket_buffers_are_ignored_and_other_options_allowed(
    machine: str, architecture: int, number: int
) -> None:
    """Buffers belong to no process: they keep the kernel's default size, and programs go on."""
    program = filter_program(machine)
    answers = {
        (level, option): verdict(program, number, level, option, architecture=architecture)
        for level in (0, 1, 6)
        for option in range(40)
    }
    ignored = {asked for asked, answer in answers.items() if answer == IGNORED}
    assert ignored == {(1, 7), (1, 8), (1, 32), (1, 33)}
    assert set(answers.values()) == {IGNORED, ALLOWED}


@pytest.mark.parametrize(
    ("machine", "architecture", "numbers"), [("x86_64", X86, (41, 53)), ("aarch64", ARM, (198, 199))]
)
def test_only_two_address_families_are_allowed(
    machine: str, architecture: int, numbers: tuple[int, int]
) -> None:
    """AF_UNIX and AF_INET, of all that there are or may come, for `socket` and for `socketpair`."""
    program = filter_program(machine)
    for number in numbers:
        allowed = {
            family
            for family in (*range(256), 2**31, 2**32 - 1)
            if verdict(program, number, architecture=architecture, argument=family) == ALLOWED
        }
        assert allowed == {1, 2}
        assert verdict(program, number, architecture=architecture, argument=40) == EAFNOSUPPORT


def test_the_kernel_reads_the_lower_half_of_a_family_and_so_does_the_filter() -> None:
    """What is in the upper half of the register changes neither."""
    assert verdict(filter_program("x86_64"), 41, argument=(7 << 32) | 40) == EAFNOSUPPORT
    assert verdict(filter_program("x86_64"), 41, argument=(7 << 32) | 1) == ALLOWED


@pytest.mark.parametrize(
    ("flags", "answer"), [(0x22, ALLOWED), (0x01, ALLOWED), (0x21, EPERM), (0x23, EPERM), (0x40021, EPERM)]
)
def test_shared_anonymous_memory_is_refused_where_no_cgroup_counts_it(flags: int, answer: int) -> None:
    """Private memory and shared files are allowed, shared memory without a file is not."""
    assert verdict(filter_program("x86_64"), 9, 0, 0, flags) == answer
    assert verdict(filter_program("aarch64"), 222, 0, 0, flags, architecture=ARM) == answer
    assert verdict(filter_program("x86_64", shared_memory=True), 9, 0, 0, flags) == ALLOWED


def test_clone3_is_unknown_so_that_libraries_fall_back() -> None:
    """Its flags lie in memory, where no filter can look."""
    assert verdict(filter_program("x86_64"), 435) == ENOSYS


def test_other_numberings_of_the_same_calls_are_refused() -> None:
    """Neither 32-bit calls nor the x32 numbering is a way around the filter."""
    assert verdict(filter_program("x86_64"), 1, architecture=0x40000003) == EPERM
    assert verdict(filter_program("x86_64"), 0x40000000 + 1) == EPERM


def test_the_numbers_of_the_other_machine_are_its_own() -> None:
    """On arm64, 97 is `unshare` and 29 is `ioctl`."""
    program = filter_program("aarch64")
    assert verdict(program, 97, architecture=ARM) == EPERM
    assert verdict(program, 29, architecture=ARM) == ALLOWED


def test_an_unknown_machine_has_no_filter() -> None:
    """An unknown processor gets no filter rather than wrong numbers; the other mechanisms stay."""
    assert filter_program("riscv64") == b""
