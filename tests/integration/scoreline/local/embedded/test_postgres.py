"""The embedded Postgres: its cluster is made whole, and by one server at a time."""

import os
import shutil
import signal
from pathlib import Path

import psycopg

from scoreline.local.embedded import embedded_servers
from scoreline.servers.addresses import Servers
from tests.integration.scoreline.local.embedded.users import (
    alive,
    answers,
    at_rest,
    home,
    postgres_pid,
)
from tests.waiting import until


def is_active(servers: Servers, worker: int) -> bool:
    with psycopg.connect(servers.postgres_url) as connection:
        query = "SELECT state = 'active' FROM pg_stat_activity WHERE pid = %s"
        return connection.execute(query, (worker,)).fetchone() == (True,)


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
