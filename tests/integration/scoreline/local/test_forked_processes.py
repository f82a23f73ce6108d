"""Services as forks of one process that has imported them: real processes, observed from outside."""

import os
import signal
from pathlib import Path

from scoreline.local.fork_server_launch import launched
from scoreline.local.processes import ProcessManager, process_manager, service_argv
from tests.processes import command_line, is_running
from tests.waiting import until

SERVICE = service_argv("provider-sim", "--port", "0")
"""A command that runs until it is stopped, and needs no server."""


def is_listening(log: Path) -> bool:
    """Whether the service has printed its address."""
    return "http://" in log.read_text()


async def fork_server_pid(manager: ProcessManager) -> int:
    """Return the process whose forks the services are."""
    return (await manager.fork_server()).pid


async def test_services_die_with_the_fork_server_and_are_started_again(tmp_path: Path) -> None:
    """No service runs unsupervised: the manager restarts every process."""
    log = tmp_path / "log"
    with log.open("ab") as log_to:
        async with process_manager(os.environ, log_to=log_to, forks=True) as manager:
            child = manager.keep("service", SERVICE)
            await until(lambda: is_listening(log), 60)
            assert child.process
            first = child.process.pid
            os.kill(await fork_server_pid(manager), signal.SIGKILL)
            await until(lambda: child.process and child.process.pid != first, 60)
            await until(lambda: not is_running(first), 60)
            assert child.exits == [-signal.SIGKILL]
            again = child.process.pid
            await until(lambda: "provider-sim" in command_line(again), 60)


async def test_services_are_forks_of_a_server_that_was_launched_before(tmp_path: Path) -> None:
    """The manager uses it, and ends it."""
    log = tmp_path / "log"
    with log.open("ab") as log_to, launched(os.environ, wanted=True) as server:
        assert server
        async with process_manager(os.environ, log_to=log_to, forks=True, launched=server) as manager:
            manager.keep("service", SERVICE)
            await until(lambda: is_listening(log), 60)
            assert await fork_server_pid(manager) == server.process.pid
    assert server.process.returncode == 0
