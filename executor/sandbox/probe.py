"""The self-test: whether a sandbox can be built here, on what footing, and if not, why.

A sandbox whose walls a program got through counts as none.
"""

import os
import shutil
import subprocess
from functools import cache
from typing import NamedTuple

from executor.sandbox.assembly import assembled
from executor.sandbox.init import GO
from executor.sandbox.leftovers import kill_leftovers
from executor.sandbox.wall_checks import WallCheck, probing_job, read_checks
from executor.sandbox.walls import Footing

BUBBLEWRAP = "bwrap"
TOOL_ENVIRON = {"PATH": os.defpath}
"""All that bubblewrap gets of the environment: a sandbox may read that of its first process."""

_TOOLS = {"prlimit": "util-linux", "setpriv": "util-linux", "env": "coreutils"}
_PATIENCE = 10
_HINT = (
    "; user namespaces may be forbidden (sysctl kernel.unprivileged_userns_clone, "
    "kernel.apparmor_restrict_unprivileged_userns, user.max_user_namespaces), or a container keeps "
    "bubblewrap out, by its seccomp profile or its masked /proc (docker run --security-opt seccomp=PROFILE "
    "--security-opt systempaths=unconfined)"
)


class Probe(NamedTuple):
    """What the self-test found: a footing, or the trouble."""

    footing: Footing | None
    trouble: str = ""
    walls: tuple[WallCheck, ...] = ()
    """What was tried on this footing, where the sandbox has a Python to try it."""


@cache
def probe(bubblewrap: str = BUBBLEWRAP) -> Probe:
    """Run the self-test in a sandbox, once a process; what a killed process has left is ended first."""
    for tool, package in ({bubblewrap: "bubblewrap"} | _TOOLS).items():
        if not shutil.which(tool, path=os.defpath):
            return Probe(None, f"{tool} is missing (apt-get install {package}, dnf install {package})")
    if trouble := _no_pidfd():
        return Probe(None, trouble)
    kill_leftovers(bubblewrap)
    troubles = []
    for footing in Footing if os.geteuid() == 0 else [Footing.USER_NAMESPACE]:
        trouble, walls = inspect(bubblewrap, footing)
        if not trouble:
            return Probe(footing, walls=walls)
        troubles.append(f"with {footing.value}: {trouble}")
    return Probe(None, f"bubblewrap does not work here ({', '.join(troubles)}){_HINT}")


def _no_pidfd() -> str:
    """Why processes can't be held by a pidfd here; nothing where they can."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return (
            f"pidfd_open fails ({error.strerror}): it takes Linux 5.3, and a seccomp profile that allows it"
        )
    return ""


def trouble_with(bubblewrap: str, footing: Footing) -> str:
    """Say why no sandbox can be built on this footing; nothing where one can."""
    return inspect(bubblewrap, footing).trouble


class Inspection(NamedTuple):
    """What is wrong with a footing, and which of its walls were tried."""

    trouble: str
    walls: tuple[WallCheck, ...] = ()


def inspect(bubblewrap: str, footing: Footing) -> Inspection:
    """Build a sandbox on this footing, and try its walls."""
    with probing_job() as job, assembled(job, footing, bubblewrap) as assembly:
        try:
            done = subprocess.run(  # noqa: S603 - arguments of our own
                assembly.argv,
                env=TOOL_ENVIRON,
                pass_fds=assembly.descriptors,
                input=GO,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Inspection(str(error))
        started = assembly.account.exit_code == 0
    walls = read_checks(done.stdout, footing)
    said = done.stderr.decode(errors="replace").strip()
    if not started:
        return Inspection(said or f"exit code {done.returncode}", walls)
    return Inspection(", ".join(f"{wall.name}: {wall.evidence}" for wall in walls if not wall.held), walls)
