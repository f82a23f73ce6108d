"""The servers of the tests: given by URL, else containers, else the embedded ones.

By contract they are disposable: Redis is emptied before each test that uses it, and databases
come and go in PostgreSQL. Never point EVAL_TEST_REDIS_URL at anything you want to keep.
"""

import asyncio
import gc
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from redis import Redis

from eventlog.keys import DEFAULT_SHARDS
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers
from scoreline.servers.addresses import Servers
from tests.databases import fresh_database

# A busy machine is no failure: what an example may take is bounded by the time-out of its test.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


FIRST = (
    *("tests/acceptance/", "tests/alerts/", "tests/escapes/", "tests/simulation/"),
    "tests/unit/storage_worker/",
)
"""Directories with long files: a long file that starts last leaves other processes idle."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long files first, otherwise in the order of their names."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))


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


@pytest.fixture(scope="session")
def migrated_template(servers: Servers) -> Iterator[str]:
    """The name of a database with every table and no rows, migrated once for the whole session."""
    with fresh_database(servers.postgres_url) as url:
        with ThreadPoolExecutor(1) as thread:  # the first test that wants it may have a running loop
            thread.submit(asyncio.run, prepare(url, shards=DEFAULT_SHARDS)).result()
        yield urlsplit(url).path[1:]


@pytest.fixture
def postgres_url(servers: Servers, migrated_template: str) -> Iterator[str]:
    """A database of this test's own, with every table and no rows: a copy, which takes no migration."""
    with fresh_database(servers.postgres_url, migrated_template) as url:
        yield url


@pytest.fixture
def empty_postgres_url(servers: Servers) -> Iterator[str]:
    """A database of this test's own without tables, for tests of migration."""
    with fresh_database(servers.postgres_url) as url:
        yield url


def _chosen(root: Path) -> AbstractContextManager[Servers]:
    redis, postgres = (os.environ.get(f"EVAL_TEST_{kind}_URL") for kind in ("REDIS", "POSTGRES"))
    if redis and postgres:
        if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
            pytest.fail("one pair of given servers serves one process, which empties it: run pytest -n 0")
        return nullcontext(Servers(redis, postgres))
    return _containers() if _docker_answers() else _embedded(root)


def _docker_answers() -> bool:
    # Where no engine listens docker-py drops its socket unclosed: bury it here, not in some test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        answered = _ping_docker()
        gc.collect()
    return answered


def _ping_docker() -> bool:
    # Imported where it is needed: collection would cost every test process half a second more.
    import docker  # type: ignore[import-untyped]  # noqa: PLC0415 - as above; docker ships no types
    from docker.errors import DockerException  # type: ignore[import-untyped]  # noqa: PLC0415 - as above

    try:
        with closing(docker.from_env(timeout=2)) as client:
            return bool(client.ping())
    except DockerException:
        return False


@contextmanager
def _embedded(root: Path) -> Iterator[Servers]:
    """Start the embedded servers without fsync, which protects from power cuts alone.

    Each of the many databases that come and go would wait for the disk; tests of durability have servers
    of their own.
    """
    with embedded_servers(root) as pair:
        with psycopg.connect(pair.postgres_url, autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET fsync = off")
            admin.execute("SELECT pg_reload_conf()")
        yield pair


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
