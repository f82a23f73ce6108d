"""The peak memory of a command.

`ru_maxrss` of a process includes the memory of the process that started it, up to exec. A command is
therefore started by a small process, which reports what it used.
"""

import subprocess
import sys
from typing import NamedTuple

from tests.acceptance.batch_commands import Folder
from tests.integration.worker import SCORELINE, environment

_LAUNCHER = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


class Measured(NamedTuple):
    """A command that has ended."""

    code: int
    kilobytes: int
    """The most memory that it took."""
    printed: str
    """Its standard error."""


def measured(folder: Folder, *arguments: str) -> Measured:
    """Run a command to its end, and measure the most memory that it took."""
    ended = subprocess.run(
        [sys.executable, "-I", "-c", _LAUNCHER, SCORELINE, *arguments],
        cwd=folder.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment(**folder.environ),
    )
    return Measured(ended.returncode, int(ended.stdout.splitlines()[-1]), ended.stderr)
