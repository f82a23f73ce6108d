"""The scenario: each fault is caused on a real fleet until its alert is delivered, then undone.

The scenario begins when Prometheus has scraped every process: an executor that is killed before its first
scrape has no series, and `WorkerDown` can't name it.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import yaml

from scoreline.provider_sim.simulator import Simulator
from tests.alerts.monitoring_stack import MonitoringStack, monitoring_stack
from tests.alerts.processes import EXECUTORS, Fleet, free_port
from tests.provider import provider
from tests.waiting import until

DEADLINE = 60
SCRAPED = {
    "max(eval_workers_present)": EXECUTORS,
    "count(rate(eval_worker_heartbeat_total[5s]) > 0)": EXECUTORS,
    "max(eval_coordinator_leading)": 1,
    "count(eval_storage_lag_seconds)": 1,
    'sum(eval_active_batches{state="running"})': 1,
}
"""Queries with their values while the whole fleet is working and scraped."""


@dataclass(frozen=True, slots=True)
class AlertTiming:
    """How long it took until an alert, and its end, were delivered."""

    alert: str
    caused_by: str
    receiver: str
    fired: float
    resolved: float


@dataclass(slots=True)
class Scenario:
    """A working fleet, its monitoring and a simulated provider."""

    fleet: Fleet
    monitoring: MonitoringStack
    provider: Simulator
    timings: list[AlertTiming] = field(default_factory=list)

    async def provoke(
        self,
        alert: str,
        receiver: str,
        *,
        caused_by: str,
        cause: Callable[[], object],
        undo: Callable[[], object],
    ) -> None:
        """Cause a fault and wait for its alert; undo the fault and wait for the alert's end."""
        inbox = self.monitoring.receiver
        began = monotonic()
        await _completed(cause())
        fired = await until(lambda: inbox.find(alert, "firing", receiver, since=began), DEADLINE)
        undone = monotonic()
        await _completed(undo())
        resolved = await until(lambda: inbox.find(alert, "resolved", receiver, since=undone), DEADLINE)
        timing = AlertTiming(alert, caused_by, receiver, fired.at - began, resolved.at - undone)
        self.timings.append(timing)

    async def submit(self, name: str, target: dict[str, object], cases: int) -> str:
        """Submit a batch and return its id."""
        rows = [json.dumps({"id": str(n), "input": f"question {n}", "expected": "x"}) for n in range(cases)]
        (self.fleet.home / f"{name}.jsonl").write_text("\n".join(rows), encoding="utf-8")
        spec = {
            "name": name,
            "dataset": f"{name}.jsonl",
            "target": target,
            "evaluator": "exact",
            "retries": 100,
            "fail_fast_after": 0,
        }
        file = self.fleet.home / f"{name}.yaml"
        file.write_text(yaml.safe_dump(spec), encoding="utf-8")
        options = ("--distributed", "--detach", "--json", "-c", str(file))
        output = await self.fleet.run("batch", "run", *options)
        return str(json.loads(output)["batch_id"])


async def _completed(result: object) -> None:
    if asyncio.iscoroutine(result):
        await result


@asynccontextmanager
async def working_fleet(home: Path, postgres_url: str) -> AsyncIterator[Scenario]:
    """Start a fleet, its monitoring and a batch that keeps it working."""
    fleet = Fleet(home, postgres_url, free_port())
    async with monitoring_stack(home, fleet.metrics) as monitoring, provider(mode="echo") as simulator:
        fleet.environ["OPENAI_BASE_URL"] = f"{simulator.base_url}/v1"
        try:
            fleet.members["redis"].start()
            await fleet.run("db", "migrate")
            fleet.start_services()
            scenario = Scenario(fleet, monitoring, simulator)
            await scenario.submit("long", {"type": "simulated", "latency": 0.5}, 5000)
            await until(lambda: _is_scraped(monitoring), DEADLINE)
            yield scenario
        finally:
            fleet.kill()


async def _is_scraped(monitoring: MonitoringStack) -> bool:
    values = await asyncio.gather(*map(monitoring.value, SCRAPED))
    return values == list(SCRAPED.values())


async def provoke_all(scenario: Scenario) -> list[AlertTiming]:
    """Cause all faults, at the same time as far as one does not inhibit the alert of another."""
    await asyncio.gather(
        _kill_one_executor(scenario),
        _suspend_one_executor(scenario),
        _fail_evaluations(scenario),
        _fail_provider(scenario),
    )
    await asyncio.gather(_kill_all_executors(scenario), _kill_redis_then_storage(scenario))
    await _kill_service(scenario, "coordinator", "CoordinatorDown")
    return scenario.timings


async def _kill_one_executor(scenario: Scenario) -> None:
    worker = scenario.fleet.members["worker-1"]
    await scenario.provoke(
        "WorkerDown", "pager", caused_by="kill -9 of one executor", cause=worker.kill, undo=worker.start
    )


async def _suspend_one_executor(scenario: Scenario) -> None:
    worker = scenario.fleet.members["worker-2"]
    await scenario.provoke(
        "WorkerStalled",
        "chat",
        caused_by="SIGSTOP of one executor",
        cause=lambda: worker.signal(signal.SIGSTOP),
        undo=lambda: worker.signal(signal.SIGCONT),
    )


async def _fail_evaluations(scenario: Scenario) -> None:
    batch: list[str] = []

    async def submit() -> None:
        target: dict[str, object] = {"type": "simulated", "permanent_rate": 0.5, "latency": 0.2}
        batch.append(await scenario.submit("failing", target, 400))

    await scenario.provoke(
        "DLQGrowing",
        "chat",
        caused_by="a batch of which half fails",
        cause=submit,
        undo=lambda: scenario.fleet.run("batch", "cancel", batch[0]),
    )


async def _fail_provider(scenario: Scenario) -> None:
    async def submit() -> None:
        scenario.provider.change(server_error=1.0)
        await scenario.submit("calls", {"type": "openai", "model": "m"}, 200)

    await scenario.provoke(
        "BreakerOpen",
        "chat",
        caused_by="a provider that answers 500",
        cause=submit,
        undo=lambda: scenario.provider.change(server_error=0.0),
    )


async def _kill_all_executors(scenario: Scenario) -> None:
    def kill() -> None:
        for process in scenario.fleet.executors:
            process.kill()

    def start() -> None:
        for process in scenario.fleet.executors:
            process.start()

    caused_by = "kill -9 of all executors"
    await scenario.provoke("AllWorkersDown", "pager", caused_by=caused_by, cause=kill, undo=start)


async def _kill_redis_then_storage(scenario: Scenario) -> None:
    """A storage worker can't start without Redis: one after the other."""
    await _kill_service(scenario, "redis", "RedisDown")
    await _kill_service(scenario, "storage-worker", "StorageDown")


async def _kill_service(scenario: Scenario, name: str, alert: str) -> None:
    process, caused_by = scenario.fleet.members[name], f"kill -9 of {name}"
    await scenario.provoke(alert, "pager", caused_by=caused_by, cause=process.kill, undo=process.start)
