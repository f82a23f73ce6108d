"""Is it at work? What supervisors ask of services that open no port, answered in a line, or as a problem.

A worker is known by its heartbeat in Redis, a leading coordinator by its lock in Postgres. A coordinator
that stands by is as well as its servers are, and somebody leads.
"""

from contextlib import aclosing
from datetime import timedelta

from eventlog.redis_streams import connect
from executor.sandbox.probe import probe
from projections.leader_election.advisory_lock import leader_quiet_for
from scoreline.problem import Problem
from taskqueue.backends import Backend, open_queues

QUIET = timedelta(minutes=2)
"""How long a leader may be silent: it speaks after every round, and rounds take seconds."""


def check_sandbox() -> str:
    """Describe on what the sandbox stands; raises `Problem` where untrusted code can't be run."""
    found = probe()
    if found.privilege_mode is None:
        raise Problem(f"Untrusted code can't be run here: {found.trouble}")
    return f"untrusted code runs behind walls, on {found.privilege_mode.value}"


async def check_worker(redis_url: str, name: str) -> str:
    """Describe how busy a worker is; raises `Problem` where none of this name is alive."""
    async with aclosing(connect(redis_url, max_connections=1)) as redis:
        present = await open_queues(Backend.REDIS, redis).executor_registry.live()
    found = next((each for each in present if each.name == name), None)
    if found is None:
        raise Problem(f"No worker named {name} is alive. See its log, or start it: scoreline worker start")
    return f"worker {name} is alive, {found.busy} of {found.slots} slots busy"


async def check_leader(postgres_url: str, lock: int) -> str:
    """Describe when the leader was last heard of; raises `Problem` where nobody leads, or is silent."""
    quiet = await leader_quiet_for(postgres_url, lock)
    if quiet is None:
        raise Problem("No coordinator leads. See its log, or start one: scoreline coordinator start")
    if quiet > QUIET:
        raise Problem(f"The leading coordinator has been silent for {quiet.total_seconds():.0f} s")
    return f"a coordinator leads, last heard of {max(0, quiet.total_seconds()):.1f} s ago"
