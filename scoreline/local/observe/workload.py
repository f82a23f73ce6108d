"""A workload to observe: a small fleet and batches for it, all on this machine."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import LiteralString

from psycopg import AsyncConnection
from rich.console import Console

from scoreline.local import fleet as fleets
from scoreline.local.demo import gsm8k
from scoreline.local.observe.unordered_writer import UnorderedWriter
from scoreline.local.processes import process_manager
from scoreline.local.storage_workers import worker_environ
from scoreline.observability.wiring import ENDPOINT
from scoreline.private_files import open_private, private_root
from scoreline.provider_sim.settings import SimulatorSettings, changed
from scoreline.provider_sim.simulator import Simulator, simulated
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.operator import operator
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.submission import new_batch_id, submit

SPECS = Path(__file__).parent / "specs"
PROVIDER: dict[str, object] = {
    "mode": "echo",
    "models": ["claude-haiku-4-5"],
    "rpm": 480,
    "limit_headers": False,
    "latency": 0.1,
    "latency_p95": 0.4,
    "batch_seconds": 2,
}
"""A provider with less to give than the batch believes."""
FAULTS: dict[str, object] = {"overloaded": 0.03, "server_error": 0.04}
"""Its faults, set after its provider batch was created: a lost reply to that takes minutes to recover."""
FLEET = fleets.Fleet("observe", executors=2)
PROCESSES = FLEET.executors + FLEET.storage_workers + 1
"""Processes that serve metrics: those of the fleet and the coordinator."""
QUICK: dict[str, object] = {
    "gap_timeout": 4.0,
    "gap_warning": 2.0,
    "worker_heartbeat_interval": 1.0,
    "rate_limit_breaker_seconds": 2.0,
}
"""So that a short run has seen all of it."""
WORKING = 120.0
"""Seconds in which a part of the work must be done."""
_UNFINISHED = "SELECT count(*) FROM batches WHERE batch_id = ANY(%s) AND finished_at IS NULL"
_ENDED = "SELECT count(*) - %s FROM evaluations WHERE batch_id = %s AND ended_at IS NOT NULL"


class TooSlow(Exception):  # noqa: N818 - a state of the world
    """The work was not done in time."""


@dataclass(slots=True)
class Workload:
    """What was given to do."""

    servers: Servers
    settings: Settings
    provider: Simulator
    console: Console
    print_line: Callable[[str], None]
    run_id: str
    demo: str = ""
    lanes: str = ""
    by_batch: str = ""
    running: str = ""
    foreign: str = field(default_factory=lambda: new_batch_id("observe-foreign"))

    async def do(self) -> None:
        """Hand in three batches and a foreign one, and wait for their end; leave a fourth under way."""
        self.demo = await self._submit(gsm8k.SPEC)
        await self._until_none(_UNFINISHED, [[self.demo]])
        self.by_batch = await self._submit(SPECS / "provider_batch.yaml")
        await self._until_none(_UNFINISHED, [[self.by_batch]])
        self.provider.change(**FAULTS)
        self.lanes = await self._submit(SPECS / "lanes.yaml")
        foreign = UnorderedWriter(self.servers.redis_url, self.foreign, self.settings.shards)
        written = await foreign.write()
        self.print_line(f"{self.foreign}: {written} evaluations by an unordered writer")
        await self._until_none(_ENDED, [written, self.foreign])
        await self._until_none(_UNFINISHED, [[self.lanes]])
        self.running = await self._submit(SPECS / "running.yaml")

    async def cancel(self) -> None:
        """End what is still under way."""
        if self.running:
            async with operator(self.servers, self.settings) as asking:
                await asking.cancel(self.running, reason="enough was seen")

    async def _submit(self, spec: Path) -> str:
        plan = make_plan(spec, {}, folder=spec.parent)
        batch_id, total = await submit(plan, self.servers, self.settings, self.console, run_id=self.run_id)
        self.print_line(f"{batch_id}: {total} evaluations")
        return batch_id

    async def _until_none(self, query: LiteralString, values: Sequence[object]) -> None:
        deadline = asyncio.get_running_loop().time() + WORKING
        async with await AsyncConnection.connect(self.servers.postgres_url, autocommit=True) as conn:
            while await (await conn.execute(query, values)).fetchone() != (0,):
                if asyncio.get_running_loop().time() > deadline:
                    raise TooSlow(f"the work was not done within {WORKING:.0f} s")
                await asyncio.sleep(0.2)


@asynccontextmanager
async def running_fleet(
    servers: Servers, settings: Settings, *, run_id: str, metrics: Path, log_path: Path
) -> AsyncIterator[Simulator]:
    """Run a fleet with metrics and a simulated provider for it; yields the provider."""
    async with simulated(changed(SimulatorSettings(), PROVIDER)) as provider:
        environ = worker_environ(settings, servers) | {
            "ANTHROPIC_BASE_URL": provider.base_url,
            "ANTHROPIC_API_KEY": "sim",
            "EVAL_METRICS_PORT": "0",
            "EVAL_METRICS_DIR": str(metrics),
            ENDPOINT: "",  # else they would send, and serve nothing
            "EVAL_WORKER_DRAIN": "2",
        }
        private_root(log_path.parent)
        with open_private(log_path) as log:
            async with process_manager(environ, log_to=log) as manager:
                fleets.start(replace(FLEET, run_id=run_id), manager)
                yield provider
