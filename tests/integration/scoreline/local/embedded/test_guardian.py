"""The guardian of embedded servers: whatever is killed, its successor continues or cleans up."""

import os
import signal
from pathlib import Path

import psycopg
import pytest

from scoreline.local.embedded import embedded_servers
from tests.integration.scoreline.local.embedded.users import (
    alive,
    answers,
    at_rest,
    guardian_pid,
    held,
    home,
    pids,
    postgres_pid,
    recall,
    remember,
    user,
    valkey_pid,
)
from tests.waiting import until


async def test_next_user_adopts_the_servers_of_a_killed_guardian(root: Path) -> None:
    """Orphaned servers go on under a new guardian, which stops them when the users are gone."""
    with embedded_servers(root):
        guardian, *orphans = pids(root)
        os.kill(guardian, signal.SIGKILL)
        await until(lambda: not held(root, "guardian"))
        with embedded_servers(root) as servers:
            assert answers(servers)
            assert [valkey_pid(root), postgres_pid(root)] == orphans
            assert guardian_pid(root) != guardian
    await until(lambda: at_rest(root))
    assert not any(alive(pid) for pid in orphans)


async def test_last_user_cleans_up_after_a_killed_guardian(root: Path) -> None:
    """Even without a later user, a killed guardian leaves no process behind for long."""
    with embedded_servers(root):
        guardian, *orphans = pids(root)
        os.kill(guardian, signal.SIGKILL)
        await until(lambda: not held(root, "guardian"))
    await until(lambda: not any(alive(pid) for pid in orphans))
    await until(lambda: at_rest(root))


async def test_adopted_server_that_dies_is_restarted(root: Path) -> None:
    """A guardian monitors adopted servers like its own."""
    with embedded_servers(root):
        os.kill(guardian_pid(root), signal.SIGKILL)
        await until(lambda: not held(root, "guardian"))
        with embedded_servers(root) as servers:
            remember(servers, "before both kills")
            os.kill(valkey_pid(root), signal.SIGKILL)
            os.kill(postgres_pid(root), signal.SIGKILL)
            await until(lambda: answers(servers))
            assert recall(servers) == ("before both kills", "before both kills")


@pytest.mark.parametrize("pid_of", [valkey_pid, postgres_pid], ids=["valkey", "postgres"])
async def test_killed_server_comes_back_with_its_data(root: Path, pid_of) -> None:
    """The guardian restarts a killed server at the same address, and nothing is lost."""
    with embedded_servers(root) as servers, psycopg.connect(servers.postgres_url):
        remember(servers, "before the kill")
        victim = pid_of(root)
        os.kill(victim, signal.SIGKILL)
        await until(lambda: not alive(victim))
        await until(lambda: answers(servers))
        assert recall(servers) == ("before the kill", "before the kill")
        assert pid_of(root) != victim


async def test_terminated_guardian_stops_its_servers(root: Path) -> None:
    """A guardian that gets SIGTERM, as at a shutdown of the machine, stops its servers cleanly first."""
    with user(root) as only:
        only.servers()
        guardian, *started = pids(root)
        os.kill(guardian, signal.SIGTERM)
        await until(lambda: not any(alive(pid) for pid in (guardian, *started)))
        assert not (home(root) / "postgres" / "postmaster.pid").exists()
