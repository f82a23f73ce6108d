"""Executors and coordinators, each in a process of its own.

They are the real ones, in a hurry: only their pauses are shorter. Executors let a witness see what they
append; coordinators write down which leads, and die at named points.
"""

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import uvloop
from redis.asyncio import Redis

import coordinator.app as coordinator_app
import executor.app as executor_app
from coordinator.coordinator import Coordinator
from coordinator.settings import CoordinatorSettings
from eventlog.keys import DEFAULT_SHARDS
from eventlog.redis_streams import RedisEventLog
from executor.contract import ExecutionEnvironment
from executor.settings import ExecutorSettings, RedisSettings, Timings
from projections.ledger.postgres import PostgresLedger
from taskqueue.backends import Backend, Queues, open_queues
from taskqueue.redis_batch_registry import RedisBatchRegistry
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from taskqueue.redis_streams import RedisTaskQueue
from tests.chaos.answering import factories
from tests.chaos.failpoints import after, before, fuse
from tests.chaos.witness import Witness, WitnessedLog
from tests.chaos.worker import hurry_the_pool

SLOTS = 4
LIFETIME = timedelta(seconds=2)
"""An executor is dead when it was silent for so long."""
TIMINGS = Timings(
    refresh=timedelta(milliseconds=100),
    block=timedelta(milliseconds=100),
    poll=timedelta(milliseconds=20),
    heartbeat=timedelta(milliseconds=200),
    take_over_every=timedelta(milliseconds=500),
    stalled_after=LIFETIME,
    shutdown_grace=timedelta(seconds=2),
)
COORDINATOR = CoordinatorSettings(
    window=60,
    page_size=20,
    cycle_interval=timedelta(milliseconds=50),
    reconcile_interval=timedelta(milliseconds=400),
    unchanged_for=timedelta(milliseconds=400),
    grace=timedelta(seconds=3),
    unregister_delay=timedelta(milliseconds=500),
)
STANDBY = 0.1

Point = tuple[object, str]
POINTS: dict[str, Point] = {
    "a batch is announced": (RedisBatchRegistry, "upsert"),
    "a window is written down": (PostgresLedger, "open_window"),
    "openings are appended": (RedisEventLog, "append"),
    "tasks are enqueued": (RedisTaskQueue, "enqueue_batch"),
    "attempts are opened": (PostgresLedger, "open_attempts"),
    "contexts are left": (RedisBatchRegistry, "put_contexts"),
    "a group goes on": (PostgresLedger, "release"),
}
"""After each of these a coordinator may die; a batch comes by all of them, by most often."""
ONCE = {"a batch is announced", "attempts are opened"}
"""Those that a batch may come by only once."""
AT_THE_END: dict[str, Point] = {
    "a batch is over": (PostgresLedger, "finish"),
    "a queue is forgotten": (RedisTaskQueue, "forget"),
}
"""The same, once a batch."""


@dataclass(frozen=True, slots=True)
class ExecutorOrders:
    """Configuration of an executor."""

    redis_url: str
    name: str
    call_log: Path
    recorded: Path
    """Where the target and the judge write down every call."""
    journals: Path
    life: int = 1

    def reborn(self) -> "ExecutorOrders":
        """Return the configuration of the next process: it keeps a journal of its own."""
        return replace(self, life=self.life + 1)


@dataclass(frozen=True, slots=True)
class CoordinatorOrders:
    """Configuration of a coordinator."""

    redis_url: str
    postgres_url: str
    name: str
    call_log: Path
    leader: Path
    """Where the leader writes its name."""
    dies: str | None = None
    dies_at_call: int = 1

    def reborn(self) -> "CoordinatorOrders":
        """Return the configuration of the next process: it dies once."""
        return replace(self, dies=None, dies_at_call=1)


def be_executor(orders: ExecutorOrders) -> None:
    """Be an executor until killed."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    WitnessedLog.witness = Witness(orders.journals / f"{orders.name}.{orders.life}.journal")
    vars(executor_app).update(RedisEventLog=WitnessedLog, open_queues=_short_lived)
    settings = ExecutorSettings(orders.name, slots=SLOTS, drain=timedelta(seconds=2), timings=TIMINGS)
    uvloop.run(
        executor_app.run_executor(
            RedisSettings(orders.redis_url),
            settings,
            environment=ExecutionEnvironment(slots=SLOTS),
            factories=factories(orders.name, orders.recorded),
        )
    )


def _short_lived(backend: Backend, redis: Redis) -> Queues:
    return replace(
        open_queues(backend, redis), executor_registry=RedisExecutorRegistry(redis, lifetime=LIFETIME)
    )


def be_coordinator(orders: CoordinatorOrders) -> None:
    """Be a coordinator until killed, or until the wanted point is reached."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    hurry_the_pool()
    vars(coordinator_app)["STANDBY"] = STANDBY
    before(Coordinator, "run_cycle", lambda: _lead(orders))
    if orders.dies:
        after(*{**POINTS, **AT_THE_END}[orders.dies], fuse(orders.dies_at_call))
    site = coordinator_app.CoordinatorConfig(orders.redis_url, orders.postgres_url, DEFAULT_SHARDS)
    uvloop.run(coordinator_app.run(site, replace(COORDINATOR, name=orders.name)))


def _lead(orders: CoordinatorOrders) -> None:
    orders.leader.write_text(orders.name)
