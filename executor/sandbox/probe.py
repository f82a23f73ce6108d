"""The self-test: whether a sandbox can be built here, on what footing, and if not, why."""

import os
import shutil
import subprocess
from functools import cache
from typing import NamedTuple

from executor.sandbox.assembly import assembled
from executor.sandbox.init import GO
from executor.sandbox.job import Job
from executor.sandbox.leftovers import kill_leftovers
from executor.sandbox.walls import Footing

BUBBLEWRAP = "bwrap"
TOOL_ENVIRON = {"PATH": os.defpath}
"""All that bubblewrap gets of the environment: a sandbox may read that of its first process."""

_TOOLS = {"prlimit": "util-linux", "setpriv": "util-linux", "env": "coreutils"}
_PATIENCE = 10
_SELF_TEST = """
(: < /proc/1/environ) 2>/dev/null || exit 0
echo "programs could control the sandbox's first process: sysctl fs.suid_dumpable=0" >&2
exit 1
"""
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
        trouble = trouble_with(bubblewrap, footing)
        if not trouble:
            return Probe(footing)
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
    with assembled(Job(("sh", "-c", _SELF_TEST), _PATIENCE), footing, bubblewrap) as assembly:
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
            return str(error)
        started = assembly.account.exit_code == 0
    said = done.stderr.decode(errors="replace").strip()
    return "" if started else said or f"exit code {done.returncode}"
