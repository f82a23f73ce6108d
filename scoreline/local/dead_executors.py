"""Executors whose process is known to be dead: nobody has to wait until their heartbeats run out."""

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
    """Say which processes on this host are dead; where nobody listens, their heartbeats say so later."""
    try:
        async with fleet_reader(redis_url) as reader:
            host = socket.gethostname()
            dead = await strike_off(reader.executor_registry, fleet=fleet, host=host, is_dead=is_dead)
    except (QueueUnavailable, RedisError) as error:
        told = {"fleet": fleet, "error": type(error).__name__}
        logger.info("the dead are not struck off: Redis does not answer", extra=told)
    else:
        logger.info("struck off", extra={"executors": dead})


def is_gone(pid: int) -> bool:
    """Whether there is no such process on this host."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


async def strike_off(
    executor_registry: ExecutorRegistry, *, fleet: str, host: str, is_dead: Callable[[int], bool]
) -> list[str]:
    """Take what lived in dead processes off the executor registry; returns the instance.

    A pid alone may be somebody else's, where hosts share a name: the fleet's name is in the executor's.
    """

    def is_ours(one: ExecutorInstance) -> bool:
        return one.host == host and one.name.startswith(f"{fleet}-")

    dead = [one.instance_id for one in await executor_registry.live() if is_ours(one) and is_dead(one.pid)]
    for instance_id in dead:
        await executor_registry.deregister(instance_id)
    return dead
