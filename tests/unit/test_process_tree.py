"""`tests.processes` reads a process tree in which any process may end meanwhile."""

import subprocess
import sys
from pathlib import Path

from tests.processes import children, command_line, descendants, is_running, kill

PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
child.wait()
sys.stdin.read()
"""


def test_a_process_that_ends_while_the_tree_is_read_has_no_children():
    """/proc/PID disappears once the parent has reaped it: the rest of the tree is read all the same."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        tree = descendants(parent.pid)
        assert next(tree) == child
        kill(child)
        while Path(f"/proc/{child}").exists():
            pass
        assert list(tree) == []


def test_an_ended_process_is_no_error():
    """Each question about a process that was reaped has an answer, and a signal to it is dropped."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    assert children(ended.pid) == []
    assert command_line(ended.pid) == []
    assert not is_running(ended.pid)
    kill(ended.pid)
