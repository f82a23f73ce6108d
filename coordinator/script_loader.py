"""Keeps the Lua scripts of executors loaded in Redis.

An executor's Redis user may call scripts by their digest and load none: it can run nothing but what a
coordinator has loaded. Redis forgets scripts when it restarts, so every coordinator process, leading or
not, checks once a second and loads missing scripts.
"""

import asyncio
import logging
from collections.abc import Sequence

from redis.asyncio import Redis
from redis.exceptions import RedisError

from eventlog.scripts import Script, load_missing

logger = logging.getLogger(__name__)

INTERVAL = 1.0


async def keep_scripts_loaded(redis: Redis, scripts: Sequence[Script]) -> None:
    """Load missing scripts into Redis until cancelled; retries while Redis is unavailable."""
    while scripts:
        try:
            if count := await load_missing(redis, scripts):
                logger.info("loaded scripts into Redis", extra={"count": count})
        except (RedisError, OSError) as error:
            logger.debug("loading scripts into Redis failed", extra={"error": str(error)})
        await asyncio.sleep(INTERVAL)
