"""Kills processes of a running batch at random: executors, storage worker, coordinator, Redis, Postgres.

The process manager starts services again, the process that owns the embedded servers starts those.
"""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.cpu import family, server_pids, service_of
from eventlog.tasks import end

VICTIMS = ("executors", "executors", "storage_worker", "coordinator", "redis", "postgres")
"""Executors are killed twice as often: there are two of them."""


@asynccontextmanager
async def killing(root: Path, *, every: float, seed: int | None) -> AsyncIterator[Counter[str]]:
    """Kill a process about every so many seconds while the block runs; yields the kills by component."""
    kills: Counter[str] = Counter()
    if seed is None:
        yield kills
        return
    task = asyncio.create_task(_kill_forever(root, every, random.Random(seed), kills))
    try:
        yield kills
    finally:
        await end([task])


async def _kill_forever(root: Path, every: float, rng: random.Random, kills: Counter[str]) -> None:
    while True:
        await asyncio.sleep(rng.uniform(0.5, 1.5) * every)
        service, which = rng.choice(VICTIMS), rng.random()
        if pids := _pids_of(service, root):
            os.kill(pids[int(which * len(pids))], signal.SIGKILL)
            kills[service] += 1


def _pids_of(service: str, root: Path) -> list[int]:
    """List the processes of a component; a server counts as one, its main process."""
    try:
        servers = server_pids(root)
    except (OSError, IndexError):  # a server is being started again
        return []
    found = [used for used in family(os.getpid(), *servers) if service_of(used) == service]
    is_server = service in ("redis", "postgres")
    return sorted(used.pid for used in found if not is_server or used.pid in servers)
