"""Programs for the sandbox, the privilege modes available here, and a mark for tests that need one."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.job import SandboxJob, SandboxLimits
from executor.sandbox.probe import BUBBLEWRAP, failure_of

PRIVILEGE_MODES = [
    privilege_mode for privilege_mode in PrivilegeMode if not failure_of(BUBBLEWRAP, privilege_mode)
]
"""The privilege modes in which a sandbox can be built here."""

PREFIXES = {
    PrivilegeMode.OWN_UID: (),
    # Root without CAP_SYS_ADMIN, as in a container: namespaces are available in a user namespace only.
    PrivilegeMode.USER_NAMESPACE: ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    if os.geteuid() == 0
    else (),
}
"""The start of a command line whose sandboxes use this privilege mode."""


def _has_namespaces() -> bool:
    """Try bubblewrap with a command of the tests' own: a broken sandbox must not skip its tests."""
    command = ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "true"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


needs_sandbox = pytest.mark.skipif(
    not _has_namespaces(), reason="bubblewrap is missing, or can't be used here"
)


def python(
    program: str,
    *,
    seconds: float = 10,
    limits: SandboxLimits | None = None,
    files: Mapping[str, Path] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> SandboxJob:
    """Return a Python program as a job; it sees `facts` as a dict named `host`."""
    preamble = f"host = __import__('json').loads({json.dumps(facts or {})!r})\n"
    return SandboxJob(
        ("python3", "-I", "-S", "-B", "program.py"),
        seconds,
        texts={"program.py": (preamble + program).encode()},
        limits=limits or SandboxLimits(),
        files=files or {},
    )
