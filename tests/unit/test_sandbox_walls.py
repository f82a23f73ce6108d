"""The walls are arguments of bubblewrap: what is bound, what is not, and in which order."""

from pathlib import Path

import pytest

from executor.sandbox.job import Job, Limits
from executor.sandbox.walls import Footing, confined, walls

JOB = Job(("true",), 1)


def bound(options: list[str]) -> dict[str, str]:
    """What is bound: host path by place."""
    at = [i for i, option in enumerate(options) if option in {"--ro-bind", "--ro-bind-try", "--bind"}]
    return {options[i + 2]: options[i + 1] for i in at}


@pytest.mark.parametrize("footing", Footing)
def test_nothing_of_the_host_is_bound_but_programs(footing: Footing) -> None:
    """No home, no temporary files, no sockets, no data; and nothing at all that can be written."""
    options = walls(JOB, footing, {})
    assert "--bind" not in options
    assert not {"/", "/tmp", "/run", "/home", "/root", "/var", "/etc"} & set(bound(options).values())


@pytest.mark.parametrize("footing", Footing)
def test_every_namespace_is_new_and_the_environment_empty(footing: Footing) -> None:
    """No network, no processes, no IPC, no names, no rights and no variables are shared."""
    options = set(walls(JOB, footing, {}))
    assert options >= {"--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--clearenv"}
    assert options >= {"--die-with-parent", "--new-session", "--cap-drop"}


def test_the_root_is_closed_last() -> None:
    """After it is read-only, nothing more can be made in it."""
    assert walls(JOB, Footing.OWN_UID, {})[-2:] == ["--remount-ro", "/"]


def test_files_are_shown_below_the_working_directory() -> None:
    """A file has the name that the job gives it, and the directories above it can be entered."""
    options = walls(Job(("true",), 1, files={"lib/solve.py": Path("/srv/solve.py")}), Footing.OWN_UID, {})
    assert bound(options)["/tmp/lib/solve.py"] == "/srv/solve.py"
    at = options.index("/tmp/lib")
    assert options[at - 3 : at] == ["--perms", "0755", "--dir"]


def test_only_a_job_that_reports_has_a_report_socket() -> None:
    """Its directory is bound, and a variable says where it is."""
    reporting = walls(Job(("true",), 1, reports=Path("/some/where")), Footing.OWN_UID, {})
    assert bound(reporting)["/run/scoreline"] == "/some/where"
    assert "/run/scoreline/report.sock" in reporting
    assert "/run/scoreline" not in bound(walls(JOB, Footing.OWN_UID, {}))


def test_limits_come_before_the_change_of_user_and_that_before_the_program() -> None:
    """The program can neither raise its limits nor be anybody else."""
    command = confined(("solve", "--fast"), Limits(processes=7), 1234)
    assert command[0] == "prlimit"
    assert "--nproc=7" in command
    assert command[command.index("setpriv") :][-3:] == ["--", "solve", "--fast"]
    assert "--reuid=1234" in command
