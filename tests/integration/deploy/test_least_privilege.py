"""Least privilege on the oldest servers that Debian has: what a stolen login can do, and what it cannot."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege
from redis import Redis
from redis.exceptions import NoPermissionError

from eventlog.keys import DEFAULT_SHARDS
from projections.database.readiness import check_ready, prepare
from tests.integration.debian_servers import (
    POSTGRES_15,
    REDIS_7_0,
    needs_postgres_15,
    needs_redis_7_0,
    postgres_15,
)
from tests.integration.deploy.test_users_acl import REFUSED, work_through
from tests.integration.deployed import Deployment, deployment

DEPLOY = Path(__file__).parents[3] / "deploy"
DANGEROUS = ("pg_execute_server_program", "pg_write_server_files", "pg_read_server_files")


@pytest.fixture(scope="module")
def migrator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The migrator's URL on PostgreSQL 15, set up by an administrator without superuser rights."""
    folder = tmp_path_factory.mktemp("pg15")
    secrets = folder / "secrets"
    secrets.mkdir()
    for name in ("migrator", "storage", "coordinator", "reader"):
        (secrets / f"postgres_{name}_password").write_text("secret")
    with postgres_15(folder) as url:
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute("CREATE ROLE administrator LOGIN CREATEDB CREATEROLE")
        as_administrator = url.replace("postgres@", "administrator@")
        for _ in range(2):  # it may be run again
            subprocess.run(
                [str(POSTGRES_15 / "psql"), "-qXf", str(DEPLOY / "postgres/init.sql"), as_administrator],
                env={**os.environ, "SECRETS": str(secrets)}, check=True, timeout=60,
            )  # fmt: skip
        yield url.replace("postgres@/postgres", "migrator@/scoreline")


@pytest.fixture(scope="module")
def on_redis_7_0(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment on Debian's Redis."""
    with deployment(tmp_path_factory.mktemp("redis7"), redis_server=REDIS_7_0) as made:
        yield made


@needs_redis_7_0
async def test_the_users_of_redis_are_the_same_on_7_0(on_redis_7_0: Deployment) -> None:
    """The list of users loads; executors do all of their work, and denied commands stay denied."""
    await work_through(on_redis_7_0)
    assert on_redis_7_0.denied() == []
    for user in ("executor", "storage", "coordinator", "reader"):
        with Redis.from_url(on_redis_7_0.redis_url(user)) as redis:
            for command in REFUSED[user]:
                with pytest.raises(NoPermissionError):
                    redis.execute_command(*command)


@needs_postgres_15
def test_the_migrator_migrates_without_the_right_to_create_roles(migrator: str) -> None:
    """A fresh server gets every table, and a second run finds nothing to do."""
    assert asyncio.run(prepare(migrator, shards=DEFAULT_SHARDS))
    assert not asyncio.run(prepare(migrator, shards=DEFAULT_SHARDS))
    asyncio.run(check_ready(migrator, shards=DEFAULT_SHARDS))


@needs_postgres_15
@pytest.mark.parametrize("role", DANGEROUS)
def test_the_migrator_can_not_reach_the_server_beneath_the_database(migrator: str, role: str) -> None:
    """It can neither join the roles that run programs and read files, nor create such a role."""
    tried: list[LiteralString] = [
        "GRANT {} TO migrator",
        "GRANT {} TO scoreline_migrator",
        "CREATE ROLE mine IN ROLE {}",
        "SET ROLE {}",
    ]
    with psycopg.connect(migrator, autocommit=True) as conn:
        for statement in tried:
            with pytest.raises(InsufficientPrivilege):
                conn.execute(psycopg.sql.SQL(statement).format(psycopg.sql.Identifier(role)))
        with pytest.raises(InsufficientPrivilege):
            conn.execute("CREATE TEMPORARY TABLE output (line text); COPY output FROM PROGRAM 'id'")


@needs_postgres_15
def test_a_database_of_an_earlier_release_is_up_to_date(migrator: str) -> None:
    """A migration that was replaced by an equivalent one is recognised by its checksum."""
    asyncio.run(prepare(migrator, shards=DEFAULT_SHARDS))
    earlier = "e4f721ef7d6ff807286ec914e3f433932441bff2ec78d302c0dd5e4cd37ce590"
    with psycopg.connect(migrator, autocommit=True) as conn:
        conn.execute("UPDATE schema_migrations SET checksum = %s WHERE version = 2", [earlier])
    asyncio.run(check_ready(migrator, shards=DEFAULT_SHARDS))
