"""Processes that use embedded servers."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from scoreline.local.embedded.locks import try_lock
from scoreline.servers.addresses import Servers

USER = """
import sys
from pathlib import Path
from scoreline.local.embedded import embedded_servers
with embedded_servers(Path(sys.argv[1])) as servers:
    print(servers.redis_url, servers.postgres_url, flush=True)
    sys.stdin.read()
"""


LOCKS = ("users", "guardian", "valkey", "postgresql")


class User:
    """Another process that uses the servers until it is stopped or killed."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", USER, str(root)],
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


def home(root: Path) -> Path:
    return root / "servers"


def at_rest(root: Path) -> bool:
    """Whether no process is left: each holds one of the locks while it lives."""
    return not any(held(root, name) for name in LOCKS)


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


def ask_valkey(servers: Servers) -> Redis:
    return Redis.from_url(servers.redis_url, decode_responses=True)


def answers(servers: Servers) -> bool:
    try:
        with ask_valkey(servers) as client, psycopg.connect(servers.postgres_url) as connection:
            connection.execute("SELECT 1")
            return bool(client.ping())
    except (RedisConnectionError, psycopg.OperationalError):
        return False


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
