"""Memory that belongs to no process is refused, or counted; so are files."""

import pytest

from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.job import SandboxLimits
from executor.sandbox.probe import ProbeResult
from executor.sandbox.sandbox import Sandbox
from tests.integration.sandboxed import PRIVILEGE_MODES, needs_sandbox, python

pytestmark = needs_sandbox

SHARED_MEMORY = """
import ctypes, mmap, os
libc = ctypes.CDLL(None)
held = 0
for flags in (mmap.MAP_SHARED, 3):  # MAP_SHARED_VALIDATE
    for path in (None, "/dev/zero"):
        try:
            number = os.open(path, os.O_RDWR) if path else -1
            for _ in range(50):
                block = mmap.mmap(number, 8 << 20, flags | (0 if path else mmap.MAP_ANONYMOUS))
                block.write(bytes(8 << 20))
                block.madvise(mmap.MADV_DONTNEED)  # still held, and no longer resident
                globals().setdefault("blocks", []).append(block)
                held += 8
        except OSError:
            pass
held += 100 * (libc.memfd_create(b"x", 0) >= 0) + 100 * (libc.shmget(0, 1 << 20, 0o1600) >= 0)
print(held < 64)
"""
EMPTY_FILES = """
import os
for number in range(443_000):
    os.close(os.open(f"/dev/shm/{number}", os.O_CREAT | os.O_WRONLY))
"""
MAPPED_FILE = """
import mmap, os, time
with open("/dev/shm/shared", "wb+") as file:
    file.truncate(24 << 20)
    block = mmap.mmap(file.fileno(), 24 << 20)
block.write(bytes(24 << 20))
for _ in range(4):
    if os.fork() == 0:
        block[:: 4096]
        time.sleep(0.5)
        os._exit(0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
print("shared by five")
"""
LIMITS = SandboxLimits(memory_mb=64, disk_mb=32)


@pytest.fixture(params=PRIVILEGE_MODES, autouse=True)
def privilege_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PrivilegeMode:
    """Every privilege mode in which a sandbox can be built here."""
    monkeypatch.setattr("executor.sandbox.sandbox.probe", lambda _: ProbeResult(request.param))
    found: PrivilegeMode = request.param
    return found


async def test_memory_that_outlives_its_mapping_is_refused() -> None:
    """Shared anonymous memory, /dev/zero, memory files and segments: nothing but a cgroup counts them."""
    outcome = await Sandbox().run(python(SHARED_MEMORY, limits=LIMITS))
    assert (outcome.stdout, outcome.killed_by) == (b"True\n", None), outcome


async def test_a_file_that_many_processes_map_counts_once() -> None:
    """Five times 24 MB would exceed the limit; the file is limited by its size alone."""
    outcome = await Sandbox().run(python(MAPPED_FILE, limits=LIMITS))
    assert (outcome.stdout, outcome.killed_by) == (b"shared by five\n", None), outcome


async def test_empty_files_are_counted() -> None:
    """An empty file uses no disk quota, but kernel memory."""
    outcome = await Sandbox().run(python(EMPTY_FILES, limits=SandboxLimits(files=2_000), seconds=30))
    assert outcome.killed_by == "disk", outcome


async def test_dev_zero_reads_as_zeros() -> None:
    """Programs that read from it go on."""
    outcome = await Sandbox().run(python("print(open('/dev/zero', 'rb').read(3))"))
    assert outcome.stdout == b"b'\\x00\\x00\\x00'\n"
