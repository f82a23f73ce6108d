"""Health checks of services that open no port: each returns a line, or raises a problem.

The check of a worker reads its heartbeat in Redis, that of a coordinator the leader lock in Postgres. A
standby coordinator is healthy if its servers answer and another coordinator leads.
"""

from contextlib import aclosing

from eventlog.redis_streams import connect
from executor.sandbox.probe import probe
from projections.leader_election.advisory_lock import QUIET, leader_quiet_for
from scoreline.command_error import CommandError
from taskqueue.backends import Backend, open_queues


def check_sandbox() -> str:
    """Return the privilege mode of the sandbox; raises `CommandError` where untrusted code can't be run."""
    result = probe()
    if result.privilege_mode is None:
        raise CommandError(f"Untrusted code can't be run here: {result.failure}")
    return f"untrusted code runs in a sandbox, privilege mode: {result.privilege_mode.value}"


async def check_worker(redis_url: str, name: str) -> str:
    """Count the busy slots of a worker; raises `CommandError` where none of this name is alive."""
    async with aclosing(connect(redis_url, max_connections=1)) as redis:
        live = await open_queues(Backend.REDIS, redis).executor_registry.live()
    worker = next((each for each in live if each.name == name), None)
    if worker is None:
        raise CommandError(
            f"No worker named {name} is alive. See its log, or start it: scoreline worker start"
        )
    return f"worker {name} is alive, {worker.busy} of {worker.slots} slots busy"


async def check_leader(postgres_url: str, lock: int) -> str:
    """Return the age of the leader's last activity; raises `CommandError` without an active one."""
    quiet = await leader_quiet_for(postgres_url, lock)
    if quiet is None:
        raise CommandError("No coordinator leads. See its log, or start one: scoreline coordinator start")
    if quiet > QUIET:
        raise CommandError(f"The leading coordinator has been silent for {quiet.total_seconds():.0f} s")
    return f"a coordinator leads, last active {max(0, quiet.total_seconds()):.1f} s ago"
