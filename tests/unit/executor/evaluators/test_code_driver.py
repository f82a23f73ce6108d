"""The driver of a `code` evaluator's program: the sentinel is returned only after the last statement."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from executor.evaluators import code_driver
from executor.evaluators.code_driver import CHANNEL_CLOSED, SENTINEL_BYTES, TICKET_BYTES

TICKET, SENTINEL = b"t" * TICKET_BYTES, b"s" * SENTINEL_BYTES


def drive(program: str, folder: Path) -> tuple[subprocess.CompletedProcess[str], bytes]:
    """Run a program under the driver; returns its end, and what the driver wrote to the channel."""
    (folder / "program.py").write_text(program)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(TICKET + SENTINEL)
        descriptor = theirs.fileno()
        command = [sys.executable, "-I", code_driver.__file__, "program.py", str(descriptor)]
        done = subprocess.run(
            command, cwd=folder, pass_fds=[descriptor], capture_output=True, text=True, check=False
        )
        theirs.shutdown(socket.SHUT_WR)
        return done, ours.recv(1_000)


def test_a_program_that_comes_to_its_end_is_reported(tmp_path: Path):
    """It runs as a script of its own: `__main__`, alone in `sys.argv`, with its own path."""
    program = "import sys, __main__; print(__name__, sys.argv, __file__, __main__.__dict__ is globals())"
    done, sent = drive(program, tmp_path)
    assert (done.returncode, sent) == (0, TICKET + SENTINEL)
    assert done.stdout.split() == ["__main__", "['program.py']", f"{tmp_path}/program.py", "True"]


@pytest.mark.parametrize(
    ("program", "exit_code"),
    [("import sys; sys.exit(0)", 0), ("import os; os._exit(0)", 0), ("raise ValueError", 1), ("(", 1)],
)
def test_a_program_that_does_not_come_to_its_end_is_not_reported(
    program: str, exit_code: int, tmp_path: Path
):
    """Whatever its exit code is, the ticket is not sent."""
    done, sent = drive(program, tmp_path)
    assert (done.returncode, sent) == (exit_code, b"")


def test_a_traceback_has_only_lines_of_the_program(tmp_path: Path):
    """The driver's own frames would distract from the error."""
    done, _ = drive("def f():\n    raise ValueError('no')\nf()\n", tmp_path)
    assert done.stderr.rstrip().endswith("ValueError: no")
    assert code_driver.__file__ not in done.stderr
    assert done.stderr.count("File ") == 2


def test_a_forked_process_that_outlives_the_program_reports_nothing(tmp_path: Path):
    """Only the process that was started has the right to report."""
    program = "import os\nif os.fork():\n    os.wait()\n    os._exit(0)\n"
    done, sent = drive(program, tmp_path)
    assert (done.returncode, sent) == (0, b"")


def test_a_program_that_closes_the_channel_is_named_as_the_cause(tmp_path: Path):
    """The error states what the program did."""
    done, sent = drive(f"import os; os.closerange(3, {os.sysconf('SC_OPEN_MAX')})", tmp_path)
    assert (done.returncode, done.stderr.strip(), sent) == (1, CHANNEL_CLOSED, b"")
