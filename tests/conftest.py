"""The servers of the tests: given by URL, else containers, else the embedded ones.

By contract they are disposable: Redis is emptied before each test that uses it, and databases
come and go in PostgreSQL. Never point EVAL_TEST_REDIS_URL at anything you want to keep.
"""

import gc
import os
import uuid
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import docker  # type: ignore[import-untyped]  # docker ships no types
import psycopg
import pytest
from docker.errors import DockerException  # type: ignore[import-untyped]  # as above
from psycopg import sql
from redis import Redis

from scoreline.embedded import Servers, embedded_servers


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """One Redis and one PostgreSQL for the whole session."""
    with _chosen(tmp_path_factory.mktemp("servers")) as pair:
        yield pair


@pytest.fixture
def redis_url(servers: Servers) -> str:
    """A Redis with nothing in it."""
    with closing(Redis.from_url(servers.redis_url)) as client:
        client.flushall()
    return servers.redis_url


@pytest.fixture
def postgres_url(servers: Servers) -> Iterator[str]:
    """A database of this test's own, empty."""
    name = f"test_{uuid.uuid4().hex}"
    database = sql.Identifier(name)
    with psycopg.connect(servers.postgres_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(database))
        yield urlsplit(servers.postgres_url)._replace(path=f"/{name}").geturl()
        admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))


def _chosen(root: Path) -> AbstractContextManager[Servers]:
    redis, postgres = (os.environ.get(f"EVAL_TEST_{kind}_URL") for kind in ("REDIS", "POSTGRES"))
    if redis and postgres:
        return nullcontext(Servers(redis, postgres))
    return _containers() if _docker_answers() else embedded_servers(root)


def _docker_answers() -> bool:
    # Where no engine listens docker-py drops its socket unclosed: bury it here, not in some test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        answered = _ping_docker()
        gc.collect()
    return answered


def _ping_docker() -> bool:
    try:
        with closing(docker.from_env(timeout=2)) as client:
            return bool(client.ping())
    except DockerException:
        return False


@contextmanager
def _containers() -> Iterator[Servers]:
    # Imported only where there is an engine: they cost a second and need one to be constructed.
    from testcontainers.community.postgres import PostgresContainer  # noqa: PLC0415
    from testcontainers.community.redis import RedisContainer  # noqa: PLC0415

    with (
        RedisContainer("redis:7.2") as redis,
        PostgresContainer("postgres:16", driver=None) as postgres,
    ):
        address = f"{redis.get_container_host_ip()}:{redis.get_exposed_port(6379)}"
        yield Servers(f"redis://{address}", postgres.get_connection_url())
