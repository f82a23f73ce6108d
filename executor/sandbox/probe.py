"""The self-test: whether a sandbox works here, in which privilege mode, and if not, why.

A sandbox in which any violation succeeded counts as unavailable.
"""

import os
import shutil
import subprocess
from functools import cache
from typing import NamedTuple

from executor.sandbox.assembly import assembled
from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.init import GO
from executor.sandbox.isolation_checks import IsolationCheck, probing_job, read_checks
from executor.sandbox.orphans import kill_orphans

BUBBLEWRAP = "bwrap"
TOOL_ENVIRON = {"PATH": os.defpath}
"""The environment of bubblewrap: a sandbox may read that of its first process."""

_TOOLS = {"prlimit": "util-linux", "setpriv": "util-linux", "env": "coreutils"}
_TIMEOUT = 10
_HINT = (
    "; user namespaces may be forbidden (sysctl kernel.unprivileged_userns_clone, "
    "kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces), or a container keeps "
    "bubblewrap out, by its seccomp profile or its masked /proc (docker run --security-opt seccomp=PROFILE "
    "--security-opt systempaths=unconfined)"
)


class ProbeResult(NamedTuple):
    """The result of the self-test: a privilege mode, or the problem."""

    privilege_mode: PrivilegeMode | None
    failure: str = ""
    checks: tuple[IsolationCheck, ...] = ()
    """The violations attempted in this mode, if the sandbox has a Python for it."""


@cache
def probe(bubblewrap: str = BUBBLEWRAP) -> ProbeResult:
    """Run the self-test in a sandbox, once a process; what a killed process has left is ended first."""
    for tool, package in ({bubblewrap: "bubblewrap"} | _TOOLS).items():
        if not shutil.which(tool, path=os.defpath):
            return ProbeResult(
                None, f"{tool} is missing (apt-get install {package}, dnf install {package})"
            )
    if failure := _no_pidfd():
        return ProbeResult(None, failure)
    kill_orphans(bubblewrap)
    failures = []
    for privilege_mode in PrivilegeMode if os.geteuid() == 0 else [PrivilegeMode.USER_NAMESPACE]:
        failure, checks = inspect(bubblewrap, privilege_mode)
        if not failure:
            return ProbeResult(privilege_mode, checks=checks)
        failures.append(f"with {privilege_mode.value}: {failure}")
    return ProbeResult(None, f"bubblewrap does not work here ({', '.join(failures)}){_HINT}")


def _no_pidfd() -> str:
    """Why processes can't be held by a pidfd here; nothing where they can."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return (
            f"pidfd_open fails ({error.strerror}): it takes Linux 5.3, and a seccomp profile that allows it"
        )
    return ""


def failure_of(bubblewrap: str, privilege_mode: PrivilegeMode) -> str:
    """Return why no sandbox works in this mode; empty if one does."""
    return inspect(bubblewrap, privilege_mode).failure


class ModeInspection(NamedTuple):
    """The problem of a privilege mode, if any, and the violations attempted."""

    failure: str
    checks: tuple[IsolationCheck, ...] = ()


def inspect(bubblewrap: str, privilege_mode: PrivilegeMode) -> ModeInspection:
    """Build a sandbox in this mode, and attempt all violations."""
    with probing_job() as job, assembled(job, privilege_mode, bubblewrap) as assembly:
        try:
            done = subprocess.run(  # noqa: S603 - arguments of our own
                assembly.argv,
                env=TOOL_ENVIRON,
                pass_fds=assembly.descriptors,
                input=GO,
                capture_output=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return ModeInspection(str(error))
        started = assembly.account.exit_code == 0
    checks = read_checks(done.stdout, privilege_mode)
    stderr = done.stderr.decode(errors="replace").strip()
    if not started:
        return ModeInspection(stderr or f"exit code {done.returncode}", checks)
    return ModeInspection(
        ", ".join(f"{check.name}: {check.evidence}" for check in checks if not check.held), checks
    )
