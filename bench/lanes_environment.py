"""The environment of lane benchmarks: a simulator, servers and executors, all new for every run."""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import Any
from urllib.request import Request, urlopen

from redis.asyncio import Redis
from rich.console import Console

from bench.cpu import family, server_pids, service_of
from bench.lanes_metrics import SimulatorCounts, read_stats
from eventlog.redis_streams import connect
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers
from scoreline.local.fleet import Fleet, start
from scoreline.local.processes import process_manager
from scoreline.local.storage_workers import worker_environ
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.datasets.sources import SyntheticSource
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.submission import submit
from taskqueue.backends import Backend, open_queues

Cpu = defaultdict[str, float]
"""CPU seconds, by the part of the system."""
LATENCY = {"latency": 0.45, "latency_p95": 0.8}
"""Seconds that the simulator takes: from 0.3 to 0.8, mostly."""
KEY = "BENCH_API_KEY"
MODEL = "claude-haiku-4-5"
LOOK_EVERY = 0.02


def report_progress(what: str) -> None:
    """Print progress to standard error."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class SimulatedProvider:
    """A simulator that runs."""

    url: str

    async def counts(self) -> SimulatorCounts:
        """Read the counts now."""
        before = time.monotonic()
        stats = await self.stats()
        return read_stats(stats, at=(before + time.monotonic()) / 2)

    async def stats(self) -> dict[str, Any]:
        """Return the simulator's counts."""
        return dict(await self._control("stats"))

    async def change(self, **settings: object) -> None:
        """Have it behave differently."""
        await self._control("settings", settings)

    async def go_out(self, seconds: float) -> None:
        """Have it break all connections for so long."""
        await self._control("outage", {"seconds": seconds})

    async def first_call(self) -> SimulatorCounts:
        """Wait for the first call."""
        while not (seen := await self.counts()).came:  # noqa: ASYNC110 - another process
            await asyncio.sleep(LOOK_EVERY)
        return seen

    async def _control(self, what: str, document: object = None) -> Any:  # noqa: ANN401 - JSON
        body = None if document is None else json.dumps(document).encode()
        asked = Request(f"{self.url}/_sim/{what}", data=body)
        return await asyncio.to_thread(_read, asked)


def _read(asked: Request) -> Any:  # noqa: ANN401 - JSON
    with urlopen(asked, timeout=30) as reply:
        return json.load(reply)


@asynccontextmanager
async def provider(**flags: object) -> AsyncIterator[SimulatedProvider]:
    """Run a simulator as a process."""
    argv = [sys.executable, "-m", "scoreline", "provider-sim", "--port", "0", "--json", "--follow-stdin"]
    for name, value in {**LATENCY, **flags}.items():
        option = name.replace("_", "-")
        argv += [f"--no-{option}"] if value is False else [f"--{option}", str(value)]
    process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE)
    try:
        if process.stdout is None:
            raise RuntimeError("the simulator has no output")
        yield SimulatedProvider(json.loads(await process.stdout.readline())["url"])
    finally:
        process.terminate()
        await process.wait()


@dataclass(frozen=True, slots=True)
class LaneBench:
    """Servers and a fleet that waits for work."""

    servers: Servers
    root: Path

    async def run(self, sim: SimulatedProvider, *, cases: int, **flags: Any) -> str:  # noqa: ANN401 - as they are typed
        """Submit a batch whose target is a simulator; returns its id."""
        target = {"type": "anthropic", "model": MODEL, "base_url": sim.url, "key_variable": KEY}
        given = {"targets": [target], "evaluators": ["exact"], "fail_fast_after": 0, **flags}
        plan = make_plan(None, given, folder=Path.cwd(), source=SyntheticSource(cases))
        batch_id, _ = await submit(plan, self.servers, Settings(), Console(stderr=True, quiet=True))
        return batch_id

    async def forget_lanes(self) -> int:
        """Delete the state of all lanes in Redis."""
        redis = Redis.from_url(self.servers.redis_url)
        try:
            keys = [key async for key in redis.scan_iter("eval:lane:*")]
            return int(await redis.delete(*keys)) if keys else 0
        finally:
            await redis.aclose()

    def cpu(self) -> Cpu:
        """Add the CPU seconds of all processes up, by the part of the system."""
        used: Cpu = defaultdict(float)
        for one in family(os.getpid(), *server_pids(self.root)):
            used["simulator" if "provider-sim" in one.command else service_of(one)] += one.cpu
        return used


@asynccontextmanager
async def lane_bench(executors: int, *, slots: int = 0) -> AsyncIterator[LaneBench]:
    """Start servers and a fleet of one executor with 100 slots, or of several with 32 each."""
    os.environ[KEY] = "sim"
    slots = slots or (100 if executors == 1 else 32)
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        servers = stack.enter_context(embedded_servers(root))
        await prepare(servers.postgres_url, shards=Settings().shards)
        environ = worker_environ(Settings(), servers) | {"EVAL_LOG_LEVEL": "ERROR"}
        manager = await stack.enter_async_context(process_manager(environ, log_to=sys.stderr.fileno()))
        stack.callback(manager.kill)  # active tasks are discarded
        start(Fleet("bench", executors, concurrency=slots), manager)
        await all_present(servers, executors)
        yield LaneBench(servers, root)


async def all_present(servers: Servers, executors: int) -> None:
    """Wait until all executors of a fleet have reported."""
    redis = connect(servers.redis_url)
    executor_registry = open_queues(Backend.REDIS, redis).executor_registry
    while len(await executor_registry.live()) < executors:  # noqa: ASYNC110 - other processes
        await asyncio.sleep(0.05)
    await asyncio.sleep(1.0)  # the coordinator and the storage worker have started before them
    await redis.aclose()


def shares(before: Cpu, after: Cpu, seconds: float) -> dict[str, float]:
    """Return the share of a core that each component used."""
    return {service: round((after[service] - before[service]) / seconds, 3) for service in sorted(after)}
