"""Which servers a command works with: the given ones, checked, or the embedded ones, made ready."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from projections.database.readiness import DatabaseNotReady, check_ready, prepare
from scoreline.local.embedded import embedded_servers
from scoreline.private_files import default_root
from scoreline.servers.addresses import Servers
from scoreline.servers.availability import check_postgres, check_privileges, check_redis
from scoreline.settings import Settings

__all__ = [
    "DatabaseNotReady",
    "Servers",
    "named_servers",
    "reachable_servers",
    "ready_postgres",
    "ready_servers",
]


@contextmanager
def named_servers(settings: Settings) -> Iterator[Servers]:
    """Lend the servers that were given, unasked; whatever has no URL is embedded, and made ready."""
    if settings.redis_url and settings.postgres_url:
        yield Servers(settings.redis_url, settings.postgres_url)
        return
    with embedded_servers(settings.data_dir or default_root(), linger=settings.servers_linger) as own:
        servers = Servers(settings.redis_url or own.redis_url, settings.postgres_url or own.postgres_url)
        if settings.postgres_url is None:
            asyncio.run(prepare(servers.postgres_url, shards=settings.shards))
        yield servers


@contextmanager
def reachable_servers(settings: Settings) -> Iterator[Servers]:
    """Lend a Redis and a Postgres that answer; whatever has no URL is embedded."""
    with named_servers(settings) as servers:
        asyncio.run(_check(servers))
        yield servers


@contextmanager
def ready_postgres(settings: Settings) -> Iterator[Servers]:
    """Lend servers of which only Postgres must answer, with every table."""
    with named_servers(settings) as servers:
        asyncio.run(check_postgres(servers.postgres_url))
        asyncio.run(check_ready(servers.postgres_url, shards=settings.shards))
        yield servers


@contextmanager
def ready_servers(settings: Settings, *, service: str | None = None) -> Iterator[Servers]:
    """Lend servers whose database has every table, agrees on the shards, and lets a service do its work."""
    with reachable_servers(settings) as servers:
        asyncio.run(check_ready(servers.postgres_url, shards=settings.shards))
        if service:
            asyncio.run(check_privileges(servers.postgres_url, service))
        yield servers


async def _check(servers: Servers) -> None:
    await check_redis(servers.redis_url)
    await check_postgres(servers.postgres_url)
