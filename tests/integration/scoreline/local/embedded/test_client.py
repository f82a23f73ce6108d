"""The embedded servers under real processes and real kills."""

import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import psycopg

from scoreline.local.embedded import embedded_servers
from tests.integration.scoreline.local.embedded.users import (
    alive,
    answers,
    ask_valkey,
    at_rest,
    home,
    pids,
    recall,
    remember,
    user,
)
from tests.waiting import until


def command_lines() -> list[str]:
    entry = subprocess.run(["ps", "axww", "-o", "command="], capture_output=True, check=True)
    return entry.stdout.decode(errors="replace").splitlines()


async def test_servers_keep_their_data_from_one_use_to_the_next(root: Path) -> None:
    """What one user wrote, a later one reads, although the servers stopped in between."""
    with embedded_servers(root) as servers:
        remember(servers, "from the first use")
    await until(lambda: at_rest(root))
    with embedded_servers(root) as servers:
        assert recall(servers) == ("from the first use", "from the first use")


async def test_servers_are_set_up_for_a_durable_log(root: Path) -> None:
    """The settings that the log and bulk loads rely on are in force."""
    with embedded_servers(root) as servers:
        with ask_valkey(servers) as client:
            names = ("appendonly", "appendfsync", "save", "maxmemory-policy", "auto-aof-rewrite-min-size")
            assert client.config_get(*names) == {
                "appendonly": "yes",
                "appendfsync": "everysec",
                "save": "",
                "maxmemory-policy": "noeviction",
                "auto-aof-rewrite-min-size": str(128 * 1024 * 1024),
            }
        with psycopg.connect(servers.postgres_url) as connection:
            names = ("fsync", "synchronous_commit", "max_wal_size", "server_encoding", "jit")
            shown = [connection.execute(f"SHOW {name}".encode()).fetchone() for name in names]
            assert shown == [("on",), ("on",), ("2GB",), ("UTF8",), ("off",)]


async def test_second_process_uses_the_same_servers(root: Path) -> None:
    """A second user starts nothing, and the servers outlive the first."""
    with user(root) as first:
        first.servers()
        before = pids(root)
        with user(root) as second:
            servers = second.servers()
            first.dismiss()
            assert pids(root) == before
            assert answers(servers)


async def test_four_users_at_once_get_one_pair(root: Path) -> None:
    """Simultaneous starts race for one lock, so there is one guardian and one pair."""
    with ExitStack() as stack:
        users = [stack.enter_context(user(root)) for _ in range(4)]
        assert len({each.servers() for each in users}) == 1
        mentioning = [line for line in command_lines() if str(home(root)) in line]
        programs = ("scoreline.local.embedded.guardian", "valkey-server", "bin/postgres")
        assert [sum(name in line for line in mentioning) for name in programs] == [1, 1, 1]


async def test_killed_only_user_leaves_nothing_running(root: Path) -> None:
    """The kernel drops a killed user's lock, so the guardian stops the servers and ends."""
    with user(root) as only:
        only.servers()
        started = pids(root)
        only.kill()
        await until(lambda: at_rest(root))
        await until(lambda: not any(alive(pid) for pid in started))


async def test_killed_user_does_not_disturb_another(root: Path) -> None:
    """Of two users one is killed; the other keeps the very same servers."""
    with user(root) as first, embedded_servers(root) as servers:
        first.servers()
        before = pids(root)
        first.kill()
        assert answers(servers)
        assert pids(root) == before


async def test_user_that_comes_while_servers_stop_gets_new_ones(root: Path) -> None:
    """A user that arrives during the stop waits for its end, and then starts new servers."""
    for _ in range(3):
        with embedded_servers(root) as servers:
            assert answers(servers)


async def test_lingering_servers_are_those_of_the_next_user(root: Path) -> None:
    """They outlive their last user; one that sets no time to linger ends them with itself."""
    with embedded_servers(root, linger=600):
        before = pids(root)
    with embedded_servers(root) as servers:
        assert answers(servers)
        assert pids(root) == before
    await until(lambda: at_rest(root))


async def test_lingering_servers_stop_when_their_time_is_over(root: Path) -> None:
    """Nothing is left running, though no other user comes."""
    with embedded_servers(root, linger=0.2):
        started = pids(root)
    await until(lambda: at_rest(root))
    assert not any(alive(pid) for pid in started)


async def test_lingering_servers_stop_when_their_directory_is_removed(tmp_path: Path) -> None:
    """A data directory that is deleted leaves no process behind."""
    with embedded_servers(tmp_path / "d", linger=600):
        started = pids(tmp_path / "d")
    shutil.rmtree(tmp_path / "d", ignore_errors=True)  # the servers remove files of theirs meanwhile
    await until(lambda: not any(alive(pid) for pid in started))
