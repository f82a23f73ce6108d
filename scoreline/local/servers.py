"""Which servers a command works with: the given ones, checked, or the embedded ones, made ready."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from projections.database.readiness import DatabaseNotReady, check_schema, prepare
from scoreline.local.embedded import embedded_servers
from scoreline.private_files import default_root
from scoreline.servers.addresses import Servers
from scoreline.servers.postgres_check import check_privileges, usable_postgres
from scoreline.settings import Settings

__all__ = [
    "DatabaseNotReady",
    "Servers",
    "named_servers",
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
def ready_postgres(settings: Settings) -> Iterator[Servers]:
    """Lend servers of which only Postgres must answer, with every table."""
    with named_servers(settings) as servers:
        if settings.postgres_url:
            asyncio.run(_check_database(settings.postgres_url, settings))
        yield servers


@contextmanager
def ready_servers(settings: Settings, *, service: str | None = None) -> Iterator[Servers]:
    """Lend servers whose database has every table, agrees on the shards, and lets a service do its work."""
    from scoreline.servers.redis_check import check_redis  # noqa: PLC0415 - commands that only read need no Redis

    with named_servers(settings) as servers:
        if settings.redis_url:
            asyncio.run(check_redis(settings.redis_url))
        if settings.postgres_url:
            asyncio.run(_check_database(settings.postgres_url, settings, service))
        yield servers


async def _check_database(url: str, settings: Settings, service: str | None = None) -> None:
    async with usable_postgres(url) as conn:
        await check_schema(conn, shards=settings.shards)
        if service:
            await check_privileges(conn, service)
