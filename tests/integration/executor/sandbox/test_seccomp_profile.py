"""The seccomp profile of the executors' containers, loaded into the kernel as an engine would load it."""

import ctypes
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.confined import LIBRARY
from tests.integration.sandboxed import needs_sandbox

ROOT = Path(__file__).parents[4]
PROFILE = ROOT / "deploy" / "seccomp.json"
PROBE = "print(*probe()[:2], sep=': ')"


def _has_libseccomp() -> bool:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


pytestmark = [needs_sandbox, pytest.mark.skipif(not _has_libseccomp(), reason="needs libseccomp")]


def confined(profile: Path, code: str) -> str:
    """Run Python code under a profile, as an unprivileged user; returns its output."""
    command = [sys.executable, "-m", "tests.integration.confined", str(profile), code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def changed(tmp_path: Path, *, without: set[str]) -> Path:
    """Write a copy of the profile without some of its calls."""
    profile: dict[str, Any] = json.loads(PROFILE.read_text(encoding="utf-8"))
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in without]
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(profile), encoding="utf-8")
    return path


def test_a_sandbox_can_be_built_under_the_profile():
    """Without root, without capabilities, with no-new-privileges: the self-test finds a privilege mode."""
    assert confined(PROFILE, PROBE) == "a user namespace:"


@pytest.mark.parametrize("call", ["mount", "umount2", "pivot_root"])
def test_bubblewrap_needs_each_allowed_call(call, tmp_path):
    """Without any one of these calls the self-test fails, so none is allowed needlessly."""
    result = confined(changed(tmp_path, without={call}), PROBE)
    assert result.startswith("None: bubblewrap does not work here")
    assert "seccomp" in result


@pytest.mark.parametrize(
    ("deed", "number"),
    [("bpf", 321), ("keyctl", 250), ("io_uring_setup", 425), ("userfaultfd", 323), ("kexec_load", 246)],
)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
def test_calls_used_for_container_escapes_are_refused(deed, number):
    """System calls with a history of escapes return EPERM, whatever their arguments."""
    code = f"libc.syscall({number}, 0, 0, 0, 0, 0); print(ctypes.get_errno())"
    assert confined(PROFILE, code) == "1", deed
