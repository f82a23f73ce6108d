"""The look around: every few seconds, what no pass would notice. Only where somebody collects metrics."""

import asyncio

import psycopg
from psycopg_pool import AsyncConnectionPool
from redis.exceptions import RedisError, ResponseError

from storage_worker import telemetry
from storage_worker.consumer import Consumer
from storage_worker.picture import POSTGRES, REDIS, Picture

INTERVAL = 5.0


async def observe_forever(picture: Picture, consumer: Consumer, pool: AsyncConnectionPool) -> None:
    """Look around until cancelled."""
    telemetry.begin()
    while True:
        if telemetry.is_wired():
            await observe(picture, consumer, pool)
        await asyncio.sleep(INTERVAL)


async def observe(picture: Picture, consumer: Consumer, pool: AsyncConnectionPool) -> None:
    """Count the backlog, and see whether the servers answer."""
    try:
        picture.backlog = sum((await consumer.lag()).values())
        picture.reached(REDIS)
    except ResponseError:  # it answers, and has lost the streams
        picture.backlog = None
        picture.reached(REDIS)
    except (RedisError, OSError):
        picture.backlog = None
        picture.missed(REDIS)
    try:
        async with pool.connection() as conn:
            await conn.execute("SELECT 1")
        picture.reached(POSTGRES)
    except (psycopg.Error, OSError):
        picture.missed(POSTGRES)
