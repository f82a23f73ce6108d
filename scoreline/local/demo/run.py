"""The demo: an ordinary batch, during which one executor is killed."""

import asyncio
import json
import time
from secrets import token_hex

from rich.console import Console
from rich.text import Text

from projections.database.connection import Connection
from projections.queries.batches import read_snapshot
from projections.queries.export import export_rows
from projections.verification.verify import verify
from scoreline.local.demo import gsm8k
from scoreline.local.demo.executor_kill import ExecutorKiller
from scoreline.local.demo.outcome import Outcome, complaints, document, some_failed, target_results
from scoreline.local.demo.report import show
from scoreline.local.fleet import Fleet
from scoreline.local.interruption import Interruption
from scoreline.local.servers import ready_servers
from scoreline.local.supervisor import BatchSupervisor, RunRequest
from scoreline.observability.wiring import Service, telemetry_for
from scoreline.reports.export_record import Record, make_record
from scoreline.reports.labels import variant_labels
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.lookup import find
from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.sources import open_sources
from scoreline.reports.screen import screen
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.settings import Settings, load_settings
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.submission import submit

SLOTS = 4
"""Slots of each executor: few, so that all executors get tasks."""
GAPS = {"gap_timeout": 4.0, "gap_warning": 2.0}
"""Short, so that storage workers scan every two seconds."""


def run_demo(*, executors: int, as_json: bool) -> int:
    """Run the demo and return its exit code."""
    began = time.monotonic()
    console = Console(stderr=True, highlight=False, markup=False) if as_json else screen()
    settings = load_settings().model_copy(update=GAPS)
    with (
        ready_servers(settings, service="coordinator") as servers,
        telemetry_for(Service.SUBMITTER, settings),
    ):
        return asyncio.run(_Demo(servers, settings, console, began).run(executors, as_json=as_json))


class _Demo:
    def __init__(self, servers: Servers, settings: Settings, console: Console, began: float) -> None:
        self.servers, self.settings, self.console, self.began = servers, settings, console, began

    async def run(self, executors: int, *, as_json: bool) -> int:
        plan = make_plan(gsm8k.SPEC, {}, folder=gsm8k.FOLDER)
        run_id = token_hex(8)
        targets = [target.label for target in plan.spec.targets]
        batch_id, total = await submit(plan, self.servers, self.settings, self.console, run_id=run_id)
        self._print(f"{batch_id}: {total} evaluations accepted, {total // len(targets)} questions of GSM8K")
        self._print(f"answered by {' and '.join(targets)}; {executors} executors will score them")
        killer = ExecutorKiller(self.servers.redis_url, self.settings.shards, batch_id, total, self._print)
        wanted = RunRequest(batch_id, Fleet(batch_id, executors, SLOTS, run_id=run_id), beside=killer.run)
        with Interruption() as interruption:
            driving = BatchSupervisor(wanted, self.servers, self.settings, self.console, interruption)
            stopped = await driving.until_over()
        if stopped is not None:
            return stopped
        outcome = await self._outcome(batch_id, targets, killer)
        show(self.console, outcome, await self._history(outcome))
        if as_json:
            print(json.dumps(document(outcome)), flush=True)  # noqa: T201 - machines read stdout
        return int(any(complaints(outcome)))

    def _print(self, words: str) -> None:
        self.console.print(Text(words), soft_wrap=True)

    async def _outcome(self, batch_id: str, targets: list[str], killer: ExecutorKiller) -> Outcome:
        async with connected(self.servers.postgres_url) as conn:
            async with conn.transaction():
                snapshot = await read_snapshot(conn, batch_id)
                records = await _records(conn, batch_id, snapshot.spec)
            started = time.monotonic()
            verified = await verify(conn, batch_id, shards=self.settings.shards)
        return Outcome(
            snapshot,
            target_results(records, gsm8k.published(targets)),
            some_failed(records),
            verified,
            verified_in=time.monotonic() - started,
            killed=killer.killed,
            again=sum(record.attempts > 1 for record in records),
            seconds=time.monotonic() - self.began,
        )

    async def _history(self, outcome: Outcome) -> EvaluationHistory | None:
        """Replay an evaluation that the killed executor had claimed."""
        if outcome.killed is None:
            return None
        async with open_sources(self.settings, self.servers, Origin.POSTGRES) as sources:
            return (await find(sources, outcome.killed.claimed[0])).history


async def _records(conn: Connection, batch_id: str, spec: str | None) -> list[Record]:
    labels = variant_labels(spec)
    return [make_record(row, labels) async for row in export_rows(conn, batch_id)]
