"""The embedded servers under real processes and real kills."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from scoreline.local.embedded import EmbeddedServerError, embedded_servers
from scoreline.local.embedded.errors import file_error
from scoreline.local.embedded.locks import try_lock
from scoreline.private_files import default_root
from scoreline.servers.addresses import Servers
from tests.waiting import until

_USER = """
import sys
from pathlib import Path
from scoreline.local.embedded import embedded_servers
with embedded_servers(Path(sys.argv[1])) as servers:
    print(servers.redis_url, servers.postgres_url, flush=True)
    sys.stdin.read()
"""
_LOCKS = ("users", "guardian", "valkey", "postgresql")


class User:
    """Another process that uses the servers until it is stopped or killed."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _USER, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def servers(self) -> Servers:
        assert self._process.stdout
        return Servers(*self._process.stdout.readline().split())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def dismiss(self) -> None:
        self._process.communicate()


@contextmanager
def user(root: Path) -> Iterator[User]:
    other = User(root)
    try:
        yield other
    finally:
        other.dismiss()


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("embedded")
    with embedded_servers(root):
        pass
    return root


@pytest.fixture
async def root(seed: Path) -> Path:
    """A root that was used before, with no process: its cluster is made once for the module."""
    await until(lambda: at_rest(seed))
    return seed


def home(root: Path) -> Path:
    return root / "servers"


def at_rest(root: Path) -> bool:
    """Whether no process is left: each holds one of the locks while it lives."""
    return not any(held(root, name) for name in _LOCKS)


def held(root: Path, name: str) -> bool:
    lock = try_lock(home(root) / f"{name}.lock")
    if lock is not None:
        os.close(lock)
    return lock is None


def guardian_pid(root: Path) -> int:
    pid = json.loads((home(root) / "status.json").read_text())["guardian"]
    assert isinstance(pid, int)
    return pid


def valkey_pid(root: Path) -> int:
    return int((home(root) / "valkey.pid").read_text())


def postgres_pid(root: Path) -> int:
    return int((home(root) / "postgres" / "postmaster.pid").read_text().split()[0])


def pids(root: Path) -> tuple[int, int, int]:
    return guardian_pid(root), valkey_pid(root), postgres_pid(root)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie that its new parent has not reaped yet is dead.
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def command_lines() -> list[str]:
    entry = subprocess.run(["ps", "axww", "-o", "command="], capture_output=True, check=True)
    return entry.stdout.decode(errors="replace").splitlines()


def ask_valkey(servers: Servers) -> Redis:
    return Redis.from_url(servers.redis_url, decode_responses=True)


def answers(servers: Servers) -> bool:
    try:
        with ask_valkey(servers) as client, psycopg.connect(servers.postgres_url) as connection:
            connection.execute("SELECT 1")
            return bool(client.ping())
    except (RedisConnectionError, psycopg.OperationalError):
        return False


def is_active(servers: Servers, worker: int) -> bool:
    with psycopg.connect(servers.postgres_url) as connection:
        query = "SELECT state = 'active' FROM pg_stat_activity WHERE pid = %s"
        return connection.execute(query, (worker,)).fetchone() == (True,)


def remember(servers: Servers, value: str) -> None:
    with ask_valkey(servers) as client, psycopg.connect(servers.postgres_url) as connection:
        client.set("kept", value)
        connection.execute("CREATE TABLE IF NOT EXISTS kept (value text)")
        connection.execute("TRUNCATE kept")
        connection.execute("INSERT INTO kept VALUES (%s)", (value,))


def recall(servers: Servers) -> tuple[object, object]:
    with ask_valkey(servers) as client, psycopg.connect(servers.postgres_url) as connection:
        row = connection.execute("SELECT value FROM kept").fetchone()
        return client.get("kept"), row and row[0]


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


async def test_only_the_owner_can_reach_the_sockets(root: Path) -> None:
    """Trust on the socket is safe because only the owner can enter its directory."""
    with embedded_servers(root):
        assert home(root).stat().st_mode & 0o777 == 0o700
        assert (home(root) / "valkey.sock").stat().st_mode & 0o777 == 0o700


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


async def test_new_postgres_waits_for_the_last_worker_of_the_killed_one(root: Path) -> None:
    """Two generations never write to one cluster: a busy worker holds the lock until it ends."""
    with embedded_servers(root) as servers, psycopg.connect(servers.postgres_url) as connection:
        worker = connection.info.backend_pid
        connection.pgconn.send_query(b"SELECT sum(i) FROM generate_series(1, 5000000) i")
        connection.pgconn.flush()
        await until(lambda: is_active(servers, worker))
        os.kill(postgres_pid(root), signal.SIGKILL)
        await until(lambda: not (home(root) / "status.json").exists())
        with embedded_servers(root) as restarted:
            assert answers(restarted)
            assert not alive(worker)
        connection.close()


async def test_terminated_guardian_stops_its_servers(root: Path) -> None:
    """A guardian that gets SIGTERM, as at a shutdown of the machine, stops its servers cleanly first."""
    with user(root) as only:
        only.servers()
        guardian, *started = pids(root)
        os.kill(guardian, signal.SIGTERM)
        await until(lambda: not any(alive(pid) for pid in (guardian, *started)))
        assert not (home(root) / "postgres" / "postmaster.pid").exists()


async def test_stale_files_of_dead_servers_are_no_obstacle(root: Path) -> None:
    """Reused pids, dead sockets and an old status file are recognised as stale."""
    me = str(os.getpid())
    (home(root) / "valkey.pid").write_text(me)
    (home(root) / "postgres" / "postmaster.pid").write_text(f"{me}\n{home(root)}/postgres\n")
    (home(root) / ".s.PGSQL.5432.lock").write_text(f"{me}\n")
    (home(root) / "valkey.sock").touch()
    (home(root) / "status.json").write_text('{"guardian": 1, "servers": {}}')
    with embedded_servers(root) as servers:
        assert answers(servers)


async def test_half_made_cluster_under_a_long_path_is_made_anew(tmp_path: Path) -> None:
    """A broken half-made cluster is replaced, and a path too long for a socket is handled."""
    long_root = tmp_path / ("long" * 25)
    draft = home(long_root) / "postgres.new"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    with embedded_servers(long_root) as servers:
        assert answers(servers)
        assert len(servers.redis_url) < 108
        assert not draft.exists()
    await until(lambda: at_rest(long_root))
    shutil.rmtree((home(long_root) / "sockets.path").read_text())


async def test_data_of_another_postgres_version_is_refused_and_kept(tmp_path: Path) -> None:
    """Old data is never touched: the error names both versions and the remedy."""
    data = home(tmp_path) / "postgres"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("13\n")
    with (
        pytest.raises(EmbeddedServerError, match="is of PostgreSQL 13") as refused,
        embedded_servers(tmp_path),
    ):
        pass
    assert "pg_dump" in refused.value.advice
    assert (data / "PG_VERSION").read_text() == "13\n"
    await until(lambda: at_rest(tmp_path))


async def test_broken_data_gives_an_error_with_the_last_log_lines(tmp_path: Path) -> None:
    """The error names the server, its last log lines and the log file."""
    data = home(tmp_path) / "postgres"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("18\n")
    with pytest.raises(EmbeddedServerError) as broken, embedded_servers(tmp_path):
        pass
    assert broken.value.server == "PostgreSQL"
    assert "postgresql.conf" in broken.value.log
    assert "What to do:" in str(broken.value)
    await until(lambda: at_rest(tmp_path))


def test_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """A root that is not a plain directory owned by the user could be a trap, and is not used."""
    (tmp_path / "elsewhere").mkdir()
    home(tmp_path).symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(EmbeddedServerError, match="not a directory of this user"),
        embedded_servers(tmp_path),
    ):
        pass


def test_root_that_cannot_be_made_gives_a_clear_error(tmp_path: Path) -> None:
    """A file where the directory should be is a clear error."""
    (tmp_path / "taken").touch()
    with (
        pytest.raises(EmbeddedServerError, match="cannot use the data directory"),
        embedded_servers(tmp_path / "taken"),
    ):
        pass


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (OSError(errno.ENOSPC, "full"), "free some disk space for /proc/nowhere"),
        (OSError(errno.EDQUOT, "full"), "free some disk space for /proc/nowhere"),
        (FileNotFoundError(errno.ENOENT, "gone"), "set EVAL_DATA_DIR to another directory"),
    ],
)
def test_the_advice_to_free_disk_space_is_given_only_where_it_is_missing(
    error: OSError, advice: str
) -> None:
    """A file system that can't hold files at all has no free space, and none would help."""
    assert advice in file_error(Path("/proc/nowhere"), error).advice


def test_default_root_follows_the_desktop_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_DATA_HOME is honoured, and its usual value is the fallback."""
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_root() == Path("/data/scoreline")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_root() == Path.home() / ".local/share/scoreline"
