"""A disk so small that it can be filled: a tablespace on a few megabytes of memory."""

import os
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from psycopg import AsyncConnection, sql

from eventlog.keys import DEFAULT_SHARDS
from projections.database.readiness import prepare
from tests.chaos.run import Run
from tests.waiting import until

SIZE = "32m"


@cache
def no_small_disk() -> str:
    """Return why no small disk can be had here; nothing if it can."""
    with tempfile.TemporaryDirectory() as place:
        try:
            with mounted(Path(place)):
                return ""
        except (OSError, subprocess.CalledProcessError):
            return "no tmpfs can be mounted here, so a Postgres whose disk is full was not tried"


@contextmanager
def mounted(place: Path) -> Iterator[None]:
    """Mount a small disk for as long as the block lasts."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", place],
        check=True,
        capture_output=True,
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True, capture_output=True)


@asynccontextmanager
async def small_disk(run: Run) -> AsyncIterator[Path]:
    """Give a run a database of its own on a small disk, and a worker for it."""
    name = f"small_{len(run.world.batches)}"
    disk, database = sql.Identifier(f"disk_of_{name}"), sql.Identifier(name)
    with tempfile.TemporaryDirectory() as place, mounted(Path(place)):
        data = Path(place) / "data"
        data.mkdir(mode=0o700)
        async with run.world.postgres() as admin:
            await admin.execute(sql.SQL("CREATE TABLESPACE {} LOCATION {}").format(disk, str(data)))
            await admin.execute(sql.SQL("CREATE DATABASE {} TABLESPACE {}").format(database, disk))
            run.postgres_url = _other_database(run.postgres_url, name)
            await prepare(run.postgres_url, shards=DEFAULT_SHARDS)
            workers = run.world.workers
            await workers.muster(1, postgres_url=_other_database(workers.orders.postgres_url, name))
            await until(lambda: _is_used(admin, name), 60)
            yield Path(place)
            await workers.dismiss()
            await admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
            await admin.execute(sql.SQL("DROP TABLESPACE {}").format(disk))


async def _is_used(admin: AsyncConnection[Any], name: str) -> bool:
    asked = "SELECT FROM pg_stat_activity WHERE datname = %s AND application_name = 'scoreline'"
    return (await (await admin.execute(asked, [name])).fetchone()) is not None


def _other_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()


@contextmanager
def fill(disk: Path) -> Iterator[None]:
    """Leave no room on a disk for as long as the block lasts."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as stream:
        try:
            while stream.write(bytes(4096)):
                pass
        except OSError:
            pass  # full
    try:
        yield
    finally:
        os.unlink(ballast)  # noqa: PTH108 - reads as what it is
