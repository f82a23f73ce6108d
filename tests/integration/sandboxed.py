"""Programs for the sandbox, the footings to be had here, and a mark for tests that need one."""

import os

import pytest

from executor.sandbox.job import Job, Limits
from executor.sandbox.probe import BUBBLEWRAP, probe, trouble_with
from executor.sandbox.walls import Footing

FOOTINGS = [footing for footing in Footing if not trouble_with(BUBBLEWRAP, footing)]
"""Those on which a sandbox can be built here."""

PREFIXES = {
    Footing.OWN_UID: (),
    # Root without CAP_SYS_ADMIN, as in a container: namespaces are to be had in a user namespace only.
    Footing.USER_NAMESPACE: ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
    if os.geteuid() == 0
    else (),
}
"""What a command line begins with so that its sandboxes stand on this footing."""

needs_sandbox = pytest.mark.skipif(probe().footing is None, reason=probe().trouble or "there is a sandbox")


def python(program: str, *, seconds: float = 10, limits: Limits | None = None) -> Job:
    """A Python program as a job."""
    return Job(
        ("python3", "-I", "-S", "-B", "program.py"),
        seconds,
        texts={"program.py": program.encode()},
        limits=limits or Limits(),
    )
