"""The isolation of a sandbox as arguments of bubblewrap: which paths are bound, and in which order."""

from pathlib import Path

import pytest

from executor.sandbox.bubblewrap_options import (
    PrivilegeMode,
    confined,
    isolation_options,
    tool,
    with_variables,
)
from executor.sandbox.init import INIT
from executor.sandbox.job import SandboxJob, SandboxLimits

JOB = SandboxJob(("true",), 1)


def bound(options: list[str]) -> dict[str, str]:
    """What is bound: host path by place."""
    at = [i for i, option in enumerate(options) if option in {"--ro-bind", "--ro-bind-try", "--bind"}]
    return {options[i + 2]: options[i + 1] for i in at}


@pytest.mark.parametrize("privilege_mode", PrivilegeMode)
def test_nothing_of_the_host_is_bound_but_programs(privilege_mode: PrivilegeMode) -> None:
    """No home, no temporary files, no sockets, no data; and nothing at all that can be written."""
    options = isolation_options(JOB, privilege_mode, {}, 9)
    assert "--bind" not in options
    assert not {"/", "/tmp", "/run", "/home", "/root", "/var", "/etc"} & set(bound(options).values())


@pytest.mark.parametrize("privilege_mode", PrivilegeMode)
def test_every_namespace_is_new_and_the_environment_empty(privilege_mode: PrivilegeMode) -> None:
    """No network, no processes, no IPC, no names, no rights and no variables are shared."""
    options = set(isolation_options(JOB, privilege_mode, {}, 9))
    assert options >= {"--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--clearenv"}
    assert options >= {"--die-with-parent", "--new-session", "--cap-drop"}


def test_the_root_is_closed_last() -> None:
    """After it is read-only, nothing more can be made in it."""
    assert isolation_options(JOB, PrivilegeMode.OWN_UID, {}, 9)[-2:] == ["--remount-ro", "/"]


def test_files_are_shown_below_the_working_directory() -> None:
    """A file has the name that the job gives it, and the directories above it can be entered."""
    job = SandboxJob(("true",), 1, files={"lib/solve.py": Path("/srv/solve.py")})
    options = isolation_options(job, PrivilegeMode.OWN_UID, {}, 9)
    assert bound(options)["/tmp/lib/solve.py"] == "/srv/solve.py"
    at = options.index("/tmp/lib")
    assert options[at - 3 : at] == ["--perms", "0755", "--dir"]


def test_only_a_job_that_reports_has_a_report_socket() -> None:
    """Its directory is bound, and a variable holds its path."""
    reporting = isolation_options(
        SandboxJob(("true",), 1, reports=Path("/some/where")), PrivilegeMode.OWN_UID, {}, 9
    )
    assert bound(reporting)["/run/scoreline"] == "/some/where"
    variables = confined(SandboxJob(("true",), 1, reports=Path("/some/where")), None)
    assert "SCORELINE_REPORT=/run/scoreline/report.sock" in variables
    assert "/run/scoreline" not in bound(isolation_options(JOB, PrivilegeMode.OWN_UID, {}, 9))


def test_limits_come_before_the_change_of_user_and_that_before_variables_and_the_program() -> None:
    """The program can neither raise its limits nor be another user, and no variable meets a privilege."""
    job = SandboxJob(("solve", "--fast"), 1, env={"LD_PRELOAD": "x.so"}, limits=SandboxLimits(processes=7))
    command = confined(job, 1234)
    limits, user, variables = (
        ("prlimit", "--nproc=7"),
        ("setpriv", "--reuid=1234"),
        ("env", "LD_PRELOAD=x.so"),
    )
    parts = [tool(limits[0]), limits[1], tool(user[0]), user[1], tool(variables[0]), variables[1], "solve"]
    places = [command.index(part) for part in parts]
    assert places == sorted(places)
    assert command[-2:] == ["solve", "--fast"]
    assert "LD_PRELOAD" not in "".join(isolation_options(job, PrivilegeMode.OWN_UID, {}, 9))


def test_the_first_process_is_executable_and_not_readable() -> None:
    """Of such a file the kernel makes a process that can't be traced."""
    options = isolation_options(JOB, PrivilegeMode.USER_NAMESPACE, {}, 9)
    at = options.index(INIT)
    assert options[at - 4 : at] == ["--perms", "0111", "--file", "9"]
    assert "--as-pid-1" in options


def test_a_program_whose_name_has_an_equals_sign_is_no_variable() -> None:
    """`env` would take it for one."""
    assert with_variables(("./a=b", "c"), {"X": "1"})[-6:] == ["sh", "-c", 'exec "$@"', "sh", "./a=b", "c"]
