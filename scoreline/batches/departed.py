"""Executors whose process is known to be dead: nobody has to wait until their heartbeats run out."""

import logging
import socket

from redis.exceptions import RedisError

from scoreline.batches.crew import crew_reader
from taskqueue.presence import Attendance, Presence
from taskqueue.tasks import QueueUnavailable

logger = logging.getLogger(__name__)


async def report_dead(redis_url: str, *, fleet: str, pid: int) -> None:
    """Say of a process on this host that it is dead; where nobody listens, its heartbeat says so later."""
    try:
        async with crew_reader(redis_url) as crew:
            dead = await strike_off(crew.attendance, fleet=fleet, host=socket.gethostname(), pid=pid)
    except (QueueUnavailable, RedisError) as error:
        logger.info("could not strike off the dead", extra={"pid": pid, "error": str(error)})
    else:
        logger.info("struck off", extra={"executors": dead, "pid": pid})


async def strike_off(attendance: Attendance, *, fleet: str, host: str, pid: int) -> list[str]:
    """Take what lived in a dead process off the attendance; returns the incarnations.

    A pid alone may be somebody else's, where hosts share a name: the fleet's name is in the executor's.
    """

    def is_dead(one: Presence) -> bool:
        return (one.host, one.pid) == (host, pid) and one.name.startswith(f"{fleet}-")

    dead = [one.incarnation for one in await attendance.present() if is_dead(one)]
    for incarnation in dead:
        await attendance.leave(incarnation)
    return dead
