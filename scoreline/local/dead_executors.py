"""Executors whose process is known to be dead: they are deregistered before their heartbeats expire."""

import logging
import os
import socket
from collections.abc import Callable

from redis.exceptions import RedisError

from scoreline.reports.fleet_status import fleet_reader
from taskqueue.executor_registry import ExecutorInstance, ExecutorRegistry
from taskqueue.tasks import QueueUnavailable

logger = logging.getLogger(__name__)


async def report_dead(redis_url: str, *, fleet: str, is_dead: Callable[[int], bool]) -> None:
    """Deregister executors of this host whose process is dead; without Redis, their leases expire."""
    try:
        async with fleet_reader(redis_url) as reader:
            host = socket.gethostname()
            dead = await deregister_dead(reader.executor_registry, fleet=fleet, host=host, is_dead=is_dead)
    except (QueueUnavailable, RedisError) as error:
        context = {"fleet": fleet, "error": type(error).__name__}
        logger.info("dead executors are not deregistered: Redis is unavailable", extra=context)
    else:
        logger.info("dead executors deregistered", extra={"executors": dead})


def is_gone(pid: int) -> bool:
    """Whether there is no such process on this host."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


async def deregister_dead(
    executor_registry: ExecutorRegistry, *, fleet: str, host: str, is_dead: Callable[[int], bool]
) -> list[str]:
    """Deregister the executors of dead processes; returns their instance ids.

    A pid alone may belong to another fleet where hosts share a name, so the fleet's name is compared too.
    """

    def is_ours(one: ExecutorInstance) -> bool:
        return one.host == host and one.name.startswith(f"{fleet}-")

    dead = [one.instance_id for one in await executor_registry.live() if is_ours(one) and is_dead(one.pid)]
    for instance_id in dead:
        await executor_registry.deregister(instance_id)
    return dead
