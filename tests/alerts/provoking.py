"""The course: each trouble is made on a real fleet until that is told, and undone until that is told."""

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
from tests.alerts.processes import EXECUTORS, Fleet
from tests.alerts.watchers import Watchers, free_port, watchers
from tests.provider import provider
from tests.waiting import until

PATIENCE = 60


@dataclass(frozen=True, slots=True)
class Measured:
    """How long it took until somebody was told."""

    alert: str
    made_by: str
    receiver: str
    fired: float
    cleared: float


@dataclass(slots=True)
class Course:
    """What is at hand."""

    fleet: Fleet
    watchers: Watchers
    provider: Simulator
    measured: list[Measured] = field(default_factory=list)

    async def provoke(
        self,
        alert: str,
        receiver: str,
        *,
        made_by: str,
        make: Callable[[], object],
        undo: Callable[[], object],
    ) -> None:
        """Make a trouble, wait until its receiver knows; undo it, wait for the same."""
        notes = self.watchers.receiver
        began = monotonic()
        await _done(make())
        fired = await until(lambda: notes.found(alert, "firing", receiver, since=began), PATIENCE)
        undone = monotonic()
        await _done(undo())
        cleared = await until(lambda: notes.found(alert, "resolved", receiver, since=undone), PATIENCE)
        self.measured.append(Measured(alert, made_by, receiver, fired.at - began, cleared.at - undone))

    async def submit(self, name: str, target: dict[str, object], cases: int) -> str:
        """Hand in a batch; returns its id."""
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
        said = await self.fleet.run("batch", "run", "--distributed", "--detach", "--json", "-c", str(file))
        return str(json.loads(said)["batch_id"])


async def _done(made: object) -> None:
    if asyncio.iscoroutine(made):
        await made


@asynccontextmanager
async def course(home: Path, postgres_url: str) -> AsyncIterator[Course]:
    """Lend a fleet at work, and all who watch it."""
    fleet = Fleet(home, postgres_url, free_port())
    async with watchers(home, fleet.metrics) as watching, provider(mode="echo") as simulator:
        fleet.environ["OPENAI_BASE_URL"] = f"{simulator.base_url}/v1"
        try:
            fleet.members["redis"].start()
            await fleet.run("db", "migrate")
            for name, process in fleet.members.items():
                if name != "redis":
                    process.start()
            here = Course(fleet, watching, simulator)
            await here.submit("long", {"type": "simulated", "latency": 0.5}, 5000)
            await until(lambda: _all_seen(watching), PATIENCE)
            yield here
        finally:
            for process in reversed(fleet.members.values()):
                process.kill()


async def _all_seen(watching: Watchers) -> bool:
    present = await watching.ask("max(eval_workers_present)")
    working = await watching.ask('sum(eval_active_batches{state="running"}) > 0')
    return bool(present and working and float(present[0]["value"][1]) == EXECUTORS)


async def provoke_all(here: Course) -> list[Measured]:
    """Make all troubles, as many as possible at once."""
    await asyncio.gather(_one_dies(here), _one_freezes(here), _letters_die(here), _provider_fails(here))
    await asyncio.gather(_all_die(here), _redis_stops(here))
    await asyncio.gather(_service_dies(here, "coordinator"), _service_dies(here, "storage-worker"))
    return here.measured


async def _one_dies(here: Course) -> None:
    worker = here.fleet.members["worker-1"]
    made_by = "kill -9 of one executor"
    await here.provoke("WorkerDown", "pager", made_by=made_by, make=worker.kill, undo=worker.start)


async def _one_freezes(here: Course) -> None:
    worker = here.fleet.members["worker-2"]
    await here.provoke(
        "WorkerStalled",
        "chat",
        made_by="SIGSTOP of one executor",
        make=lambda: worker.signal(signal.SIGSTOP),
        undo=lambda: worker.signal(signal.SIGCONT),
    )


async def _letters_die(here: Course) -> None:
    batch: list[str] = []

    async def make() -> None:
        batch.append(
            await here.submit("dead", {"type": "simulated", "permanent_rate": 0.5, "latency": 1}, 400)
        )

    await here.provoke(
        "DLQGrowing",
        "chat",
        made_by="a batch of which half fails",
        make=make,
        undo=lambda: here.fleet.run("batch", "cancel", batch[0]),
    )


async def _provider_fails(here: Course) -> None:
    async def make() -> None:
        here.provider.change(server_error=1.0)
        await here.submit("asking", {"type": "openai", "model": "m"}, 200)

    await here.provoke(
        "BreakerOpen",
        "chat",
        made_by="a provider that answers 500",
        make=make,
        undo=lambda: here.provider.change(server_error=0.0),
    )


async def _all_die(here: Course) -> None:
    def kill() -> None:
        for process in here.fleet.executors:
            process.kill()

    def start() -> None:
        for process in here.fleet.executors:
            process.start()

    made_by = "kill -9 of all executors"
    await here.provoke("AllWorkersDown", "pager", made_by=made_by, make=kill, undo=start)


async def _service_dies(here: Course, name: str) -> None:
    alert = {"coordinator": "CoordinatorDown", "storage-worker": "StorageDown"}[name]
    process, made_by = here.fleet.members[name], f"kill -9 of the {name.replace('-', ' ')}"
    await here.provoke(alert, "pager", made_by=made_by, make=process.kill, undo=process.start)


async def _redis_stops(here: Course) -> None:
    redis = here.fleet.members["redis"]
    made_by = "kill -9 of Redis"
    await here.provoke("RedisDown", "pager", made_by=made_by, make=redis.kill, undo=redis.start)
