"""With a cgroup delegated to the executor, the kernel counts shared memory, and it need not be refused."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from executor.contract import Permanent
from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.job import SandboxJob, SandboxLimits
from executor.sandbox.memory_cgroup import V1, V2, DelegatedCgroup, MemoryCgroup
from executor.sandbox.probe import ProbeResult
from executor.sandbox.sandbox import Sandbox
from tests.integration.sandboxed import PRIVILEGE_MODES, needs_sandbox, python

pytestmark = needs_sandbox

ROOTS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
LIMITS = SandboxLimits(memory_mb=64, disk_mb=8)
HOARD = """
import mmap, os, time
blocks = []
for number in range(host["blocks"]):
    block = mmap.mmap(-1, 8 << 20)
    block.write(b"x" * (8 << 20))
    block.madvise(mmap.MADV_DONTNEED)  # still held, and no longer resident
    blocks.append(block)
print(sum(block[0] for block in blocks))
"""


@pytest.fixture
def delegated() -> Iterator[str]:
    """A memory cgroup of our own, without processes."""
    parent = next((root for root in ROOTS if _counts_memory(root)), None)
    if parent is None or not os.access(parent, os.W_OK):
        pytest.skip("no memory cgroup can be made here")
    path = parent / f"scoreline-tests-{uuid4().hex}"
    path.mkdir()
    yield str(path)
    path.rmdir()  # which fails if a group of a run is left below it


def _counts_memory(root: Path) -> bool:
    control = root / "cgroup.subtree_control"
    return (root / V1.limit).exists() or (control.exists() and "memory" in control.read_text())


@pytest.mark.parametrize("privilege_mode", PRIVILEGE_MODES)
async def test_shared_memory_is_allowed_up_to_the_limit_and_not_beyond(
    delegated: str, privilege_mode: PrivilegeMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 of 64 MB are allowed; a program that holds 800 MB, although not resident, is killed."""
    monkeypatch.setattr("executor.sandbox.sandbox.probe", lambda _: ProbeResult(privilege_mode))
    sandbox = Sandbox(cgroup=delegated)
    modest = await sandbox.run(python(HOARD, limits=LIMITS, facts={"blocks": 4}))
    assert (modest.stdout, modest.killed_by) == (b"480\n", None), modest
    greedy = await sandbox.run(python(HOARD, limits=LIMITS, facts={"blocks": 100}))
    assert (greedy.stdout, greedy.killed_by) == (b"", "memory"), greedy


async def test_the_kernel_keeps_the_limit_where_no_sample_does(
    delegated: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that the kernel kills for memory makes a run that has exceeded its memory limit."""
    monkeypatch.setattr("executor.sandbox.resource_monitor._INTERVAL", 1_000)
    outcome = await Sandbox(cgroup=delegated).run(python(HOARD, limits=LIMITS, facts={"blocks": 100}))
    assert (outcome.stdout, outcome.killed_by) == (b"", "memory"), outcome


def test_groups_of_killed_executors_are_removed(delegated: str) -> None:
    """Those of live processes are left alone."""
    abandoned, live = (
        Path(delegated, f"scoreline-{2**22 + 1}-1"),
        Path(delegated, f"scoreline-{os.getpid()}-0"),
    )
    abandoned.mkdir()
    live.mkdir()
    assert DelegatedCgroup(Path(delegated)).failure == ""
    assert (abandoned.exists(), live.exists()) == (False, True)
    live.rmdir()


async def test_a_cgroup_that_can_not_be_used_is_named(tmp_path: Path) -> None:
    """Untrusted code is refused then, because the operator requires the kernel's accounting."""
    sandbox = Sandbox(cgroup=str(tmp_path / "gone"))
    with pytest.raises(Permanent, match=r"gone can't be used.*EVAL_WORKER_CGROUP"):
        await sandbox.run(SandboxJob(("true",), 5))


def test_the_second_version_of_the_interface(tmp_path: Path) -> None:
    """Limit and swap are written before anything runs; figures and kills are read from its files."""
    with DelegatedCgroup(tmp_path).group(LIMITS) as group:
        assert group.interface == V2
        assert (group.path / "memory.max").read_text() == str((64 + 2 * 8 + 16) << 20)
        (group.path / "memory.stat").write_text("anon 5\nfile 9\nshmem 7\n")
        (group.path / "memory.events").write_text("max 3\noom 1\noom_kill 0\n")
        assert (group.memory(), group.ran_out()) == ((5, 7), False)
        (group.path / "memory.events").write_text("oom_kill 1\n")
        assert MemoryCgroup(group.path, V2).ran_out()
