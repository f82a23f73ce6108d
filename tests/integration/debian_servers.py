"""Servers as Debian packages them, older than the embedded ones: PostgreSQL 15 and Redis 7.0.

with postgres_15(folder) as url: ...       a superuser's URL
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

POSTGRES_15 = Path("/usr/lib/postgresql/15/bin")
REDIS_7_0 = shutil.which("redis-server")
needs_postgres_15 = pytest.mark.skipif(
    not (POSTGRES_15 / "postgres").exists(), reason="PostgreSQL 15 is not installed (apt: postgresql-15)"
)
needs_redis_7_0 = pytest.mark.skipif(
    REDIS_7_0 is None, reason="redis-server is not installed (apt: redis-server)"
)


@contextmanager
def postgres_15(folder: Path) -> Iterator[str]:
    """Run a server that listens on a socket only, and stop it with the block."""
    data, sockets = folder / "data", folder / "s"
    sockets.mkdir(parents=True)
    # PostgreSQL refuses to run as root, but accepts another user of a namespace.
    plain = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"] if os.geteuid() == 0 else []
    subprocess.run(
        [*plain, str(POSTGRES_15 / "initdb"), "-D", str(data), "-U", "postgres", "--no-sync"],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    command = [*plain, str(POSTGRES_15 / "postgres"), "-D", str(data), "-k", str(sockets), "-h", "", "-F"]
    with (
        (folder / "postgres.log").open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
    ):
        try:
            url = f"postgresql://postgres@/postgres?host={sockets}"
            _await_answer(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _await_answer(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            continue
        return
    raise AssertionError("PostgreSQL ended")
