"""What follows from the description of a server: its log, its environment and its recorded process."""

import os
import subprocess
from pathlib import Path

import pytest

from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.local.embedded.locks import try_lock
from scoreline.local.embedded.server_spec import Runner, failure, living_pid, log_path, read_log
from tests.unit.scoreline.local.embedded.specs import shell


def finish(home: Path, script: str, *, stdin: str = "") -> None:
    """Run a step of a server to its end."""
    lock = try_lock(home / "lock")
    assert lock is not None
    try:
        Runner(shell(home, ""), lock).finish("the step", ["/bin/sh", "-c", script], stdin=stdin)
    finally:
        os.close(lock)


def test_a_program_writes_to_the_log_of_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In the server's folder, with its input, and without the user's variables for PostgreSQL."""
    monkeypatch.setenv("PGPORT", "1234")
    finish(tmp_path, 'cat; pwd >&2; echo "port $PGPORT, $LC_ALL"', stdin="hello\n")
    assert log_path(shell(tmp_path, "")).read_text() == f"hello\n{tmp_path}\nport , C\n"


def test_a_step_that_fails_is_an_error_with_the_end_of_the_log(tmp_path: Path):
    """Exit code and last line are those of the program."""
    with pytest.raises(EmbeddedServerError) as error:
        finish(tmp_path, "echo broken; exit 3")
    assert error.value.problem == "the step failed (exit code 3)."
    assert error.value.log == "  broken"


def test_only_what_the_log_gained_is_read(tmp_path: Path):
    """Earlier starts are not blamed."""
    spec = shell(tmp_path, "")
    log_path(spec).write_text("before\nafter\n")
    assert read_log(spec, len("before\n")) == "after\n"
    assert failure(spec, "ended.", since=len("before\n")).log == "  after"


@pytest.mark.parametrize("content", ["", "word\n"])
def test_a_file_without_a_pid_names_no_process(tmp_path: Path, content: str):
    """A server that was killed while it wrote the file leaves it empty."""
    spec = shell(tmp_path, "")
    assert living_pid(spec) is None
    spec.pid_file.write_text(content)
    assert living_pid(spec) is None


def test_a_pid_counts_only_with_the_data_directory_in_its_command_line(tmp_path: Path):
    """The kernel gives old numbers to other programs, and a directory may begin like another."""
    spec = shell(tmp_path, "")
    for argument, is_server in ((str(spec.data), True), (f"{spec.data}-2", False)):
        command = ["/bin/sh", "-c", "echo started; read line", "server", argument]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stdout.readline() == b"started\n"  # before, it may have no command line yet
            spec.pid_file.write_text(f"{process.pid}\n{spec.data}\n")
            assert living_pid(spec) == (process.pid if is_server else None)
            process.communicate()
    assert living_pid(spec) is None
