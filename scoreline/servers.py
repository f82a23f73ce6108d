"""Which servers a command works with: the given ones, checked, or the embedded ones, made ready."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from projections.database import DatabaseNotReady, check_ready, prepare
from scoreline.embedded import Servers, default_root, embedded_servers
from scoreline.preflight import check_postgres, check_redis
from scoreline.settings import Settings

__all__ = ["DatabaseNotReady", "Servers", "reachable_servers", "ready_servers"]


@contextmanager
def reachable_servers(settings: Settings) -> Iterator[Servers]:
    """Lend a Redis and a Postgres that answer; whatever has no URL is embedded."""
    if settings.redis_url and settings.postgres_url:
        given = Servers(settings.redis_url, settings.postgres_url)
        asyncio.run(_check(given))
        yield given
        return
    with embedded_servers(settings.data_dir or default_root()) as own:
        servers = Servers(settings.redis_url or own.redis_url, settings.postgres_url or own.postgres_url)
        asyncio.run(_check(servers))
        if settings.postgres_url is None:
            asyncio.run(prepare(servers.postgres_url, shards=settings.shards))
        yield servers


@contextmanager
def ready_servers(settings: Settings) -> Iterator[Servers]:
    """Lend servers whose database has every table, and agrees on the shards."""
    with reachable_servers(settings) as servers:
        asyncio.run(check_ready(servers.postgres_url, shards=settings.shards))
        yield servers


async def _check(servers: Servers) -> None:
    await check_redis(servers.redis_url)
    await check_postgres(servers.postgres_url)
