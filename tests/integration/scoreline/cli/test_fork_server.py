"""The fork server: each service is a fork with its own command line, session and exit code."""

import os
import signal
from pathlib import Path

from scoreline.local.processes import ProcessManager, process_manager, service_argv
from tests.processes import children, command_line, is_running
from tests.waiting import until

SERVICE = service_argv("provider-sim", "--port", "0")
"""A command that runs until it is stopped, and needs no server."""


def is_listening(log: Path) -> bool:
    """Whether the service has printed its address."""
    return "http://" in log.read_text()


async def fork_server_pid(manager: ProcessManager) -> int:
    """Return the process whose forks the services are."""
    return (await manager.fork_server()).pid


async def test_a_service_is_a_fork_with_a_command_line_and_a_session_of_its_own(tmp_path: Path) -> None:
    """`ps` and /proc show the command, and Ctrl-C in the terminal does not reach it."""
    log = tmp_path / "log"
    with log.open("ab") as log_to:
        async with process_manager(os.environ, log_to=log_to, forks=True) as manager:
            child = manager.keep("service", SERVICE)
            await until(lambda: is_listening(log), 60)
            assert child.process
            pid = child.process.pid
            assert children(await fork_server_pid(manager)) == [pid]
            assert command_line(pid)[-4:] == ["scoreline", "provider-sim", "--port", "0"]
            assert os.getsid(pid) == pid
    assert not is_running(pid)
    assert child.process.returncode in {0, -signal.SIGTERM}


async def test_exit_codes_and_output_are_those_of_the_command(tmp_path: Path) -> None:
    """A fork ends as the command does: its exit code is reported, its standard error is in the log."""
    log = tmp_path / "log"
    with log.open("ab") as log_to:
        async with process_manager(os.environ, log_to=log_to, forks=True) as manager:
            wrong = manager.keep("wrong", service_argv("no-such-command"))
            killed = manager.keep("killed", SERVICE)
            await until(lambda: wrong.exits and is_listening(log), 60)
            assert killed.process
            os.kill(killed.process.pid, signal.SIGKILL)
            await until(lambda: killed.exits, 60)
    assert (wrong.exits[0], killed.exits[0]) == (2, -signal.SIGKILL)
    assert "no-such-command" in log.read_text()
