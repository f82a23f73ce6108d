"""The demo from end to end: servers, storage workers, writers, disorder, and a look at the tables."""

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from typing import BinaryIO

from psycopg import AsyncConnection, OperationalError
from rich.console import Console

from eventlog.event_queue import EventQueue
from eventlog.redis_streams import RedisEventLog
from scoreline.demo.disorder import DisorderlyLog
from scoreline.demo.outcome import Outcome
from scoreline.demo.report import Display, print_json, print_report
from scoreline.demo.writers import live, plan
from scoreline.embedded import Servers, default_root
from scoreline.problem import Problem
from scoreline.processes import Child, process_manager
from scoreline.servers import ready_servers
from scoreline.settings import Settings, load_settings
from scoreline.workers import WorkerPlan, worker_argv, worker_environ

WRITERS = 4
CONNECTIONS = 3
"""Connections of each writer: what travels over different ones arrives in any order."""
PATIENCE = 90.0
"""Seconds without any progress after which what is left counts as stuck."""
LOOK_EVERY = 0.1


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked for."""

    evaluations: int
    workers: int
    seed: int


def run_demo(*, evaluations: int, workers: int, seed: int | None, as_json: bool) -> int:
    """Run the demo and return its exit code."""
    settings = load_settings().model_copy(update={"gap_timeout": 4.0, "gap_warning": 2.0})
    wanted = Wanted(evaluations, workers, SystemRandom().randrange(10**6) if seed is None else seed)
    console = Console(stderr=as_json)
    with ready_servers(settings) as servers:
        outcome = asyncio.run(_run(servers, settings, console, wanted))
    print_report(console, outcome)
    if as_json:
        print_json(outcome)
    return 0 if outcome.is_good else 1


async def _run(servers: Servers, settings: Settings, console: Console, wanted: Wanted) -> Outcome:
    started = time.monotonic()
    batch_id = f"demo-{int(time.time())}-{wanted.seed}"
    rng = Random(wanted.seed)  # noqa: S311 - disorder to be repeated, not a secret
    plans = [plan(batch_id, number, rng) for number in range(wanted.evaluations)]
    outcome = Outcome(batch_id, wanted.seed, frozenset(one.evaluation_id for one in plans))
    log_path = (settings.data_dir or default_root()) / "storage-worker.log"

    def on_restart(child: Child) -> None:
        outcome.restarts += 1
        console.print(f"{child.name} ended (code {child.exits[-1]}): starting it again; see {log_path}")

    async with AsyncExitStack() as stack:
        manager = await stack.enter_async_context(
            process_manager(
                worker_environ(settings, servers),
                log_to=stack.enter_context(_appended(log_path)),
                on_restart=on_restart,
            )
        )
        for number in range(wanted.workers):
            manager.keep(f"storage worker {number}", worker_argv(WorkerPlan("demo"), number))
        display = stack.enter_context(Display(console, len(plans)))
        queues = [await _open_queue(stack, servers, settings, outcome, number) for number in range(WRITERS)]
        lives = [
            live(one, batch_id, queues[number % WRITERS], outcome.depths.append)
            for number, one in enumerate(plans)
        ]
        await asyncio.gather(_watch(servers, settings, outcome, display), *lives)
    outcome.seconds = time.monotonic() - started
    return outcome


def _appended(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")


async def _open_queue(
    stack: AsyncExitStack, servers: Servers, settings: Settings, outcome: Outcome, number: int
) -> EventQueue:
    logs = [RedisEventLog.from_url(servers.redis_url, shards=settings.shards) for _ in range(CONNECTIONS)]
    for log in logs:
        stack.push_async_callback(log.aclose)
    disorder = DisorderlyLog(logs, Random(outcome.seed + number))  # noqa: S311 - as above
    outcome.mischief.append(disorder.mischief)
    queue = EventQueue(disorder, source=f"writer-{number}", observe=outcome.delays.append)
    return await stack.enter_async_context(queue)


async def _watch(servers: Servers, settings: Settings, outcome: Outcome, display: Display) -> None:
    """Follow the tables until all has ended, or nothing has moved for too long; then look closely."""
    moved_at, before = time.monotonic(), outcome.status
    while True:
        await asyncio.sleep(LOOK_EVERY)
        given_up = time.monotonic() - moved_at > PATIENCE
        try:
            async with await AsyncConnection.connect(servers.postgres_url, connect_timeout=3) as conn:
                await outcome.look(conn)
                if outcome.is_over or given_up:
                    await outcome.look_closely(conn)
                    await outcome.hold_against_the_log(servers.postgres_url, shards=settings.shards)
                    return
        except OperationalError as error:
            if given_up:
                raise Problem(f"Postgres has been away for {PATIENCE:.0f} s: {error}") from error
            display.say("Postgres is away: waiting for it")
            continue
        display.show(outcome)
        if outcome.status != before:
            moved_at, before = time.monotonic(), outcome.status
