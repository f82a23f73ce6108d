"""Executors, coordinators and people who hand batches in, each in a process of its own.

They are the real ones, in a hurry: only their pauses are shorter. Executors let a witness see what they
append; coordinators say who leads; coordinators and people are mortal at named points.
"""

import logging
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import uvloop
from redis.asyncio import Redis

import coordinator.app as coordinator_app
import executor.app as executor_app
from coordinator.accepting import accept
from coordinator.coordinator import Coordinator
from coordinator.settings import CoordinatorSettings
from coordinator.submission import NewBatch, NewEvaluation
from eventlog.clock import utc_now
from eventlog.keys import DEFAULT_SHARDS
from eventlog.redis_streams import RedisEventLog
from executor.contract import Surroundings
from executor.settings import Connection, ExecutorSettings, Rhythm
from projections import ledger_postgres
from projections.ledger import BatchExists
from projections.ledger_postgres import PostgresLedger
from projections.postgres import make_pool
from taskqueue.backends import Backend, Queues, open_queues
from taskqueue.redis_board import RedisBoard
from taskqueue.redis_presence import RedisAttendance
from taskqueue.redis_streams import RedisTaskQueue
from tests.chaos.answering import makers
from tests.chaos.failpoints import after, before, fuse
from tests.chaos.witness import Witness, WitnessedLog
from tests.chaos.worker import hurry_the_pool

SLOTS = 4
LIFETIME = timedelta(seconds=2)
"""An executor is dead when it was silent for so long."""
RHYTHM = Rhythm(
    poll=timedelta(milliseconds=100),
    block=timedelta(milliseconds=100),
    glance=timedelta(milliseconds=20),
    beat=timedelta(milliseconds=200),
    take_over_every=timedelta(milliseconds=500),
    take_over_idle=LIFETIME,
    last_words=timedelta(seconds=2),
)
COORDINATOR = CoordinatorSettings(
    window=60,
    chunk=20,
    round_interval=timedelta(milliseconds=50),
    reconcile_interval=timedelta(milliseconds=400),
    unchanged_for=timedelta(milliseconds=400),
    grace=timedelta(seconds=3),
    farewell=timedelta(milliseconds=500),
)
STANDBY = 0.1
ACCEPT_CHUNK = 16
BATCH_EXISTS = 3
"""The exit code of somebody who hands in what is there already."""

Point = tuple[object, str]
POINTS: dict[str, Point] = {
    "a batch is announced": (RedisBoard, "announce"),
    "a window is written down": (PostgresLedger, "open_window"),
    "openings are appended": (RedisEventLog, "append"),
    "tasks are enqueued": (RedisTaskQueue, "enqueue_batch"),
    "attempts are opened": (PostgresLedger, "open_attempts"),
    "contexts are left": (RedisBoard, "put_contexts"),
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
BEFORE_COMMIT: dict[str, Point] = {
    "the batch is inserted": (ledger_postgres, "_insert_head"),
    "a chunk is inserted": (ledger_postgres, "_insert_chunk"),
    "totals are added": (ledger_postgres, "_add_totals"),
}
AFTER_COMMIT: dict[str, Point] = {"the batch is accepted": (PostgresLedger, "accept")}


@dataclass(frozen=True, slots=True)
class ExecutorOrders:
    """What an executor is told."""

    redis_url: str
    name: str
    notebook: Path
    books: Path
    """Where the target and the judge write down every call."""
    journals: Path
    life: int = 1

    def reborn(self) -> "ExecutorOrders":
        """Tell whoever follows: it keeps a journal of its own."""
        return replace(self, life=self.life + 1)


@dataclass(frozen=True, slots=True)
class CoordinatorOrders:
    """What a coordinator is told."""

    redis_url: str
    postgres_url: str
    name: str
    notebook: Path
    leader: Path
    """Where whoever leads leaves its name."""
    dies: str | None = None
    dies_at_call: int = 1

    def reborn(self) -> "CoordinatorOrders":
        """Tell whoever follows: it dies once."""
        return replace(self, dies=None, dies_at_call=1)


@dataclass(frozen=True, slots=True)
class Submission:
    """What somebody hands in, and where he dies."""

    postgres_url: str
    batch: NewBatch
    evaluations: tuple[NewEvaluation, ...]
    dies: str | None = None
    dies_at_call: int = 1


def be_executor(orders: ExecutorOrders) -> None:
    """Be an executor until killed."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    WitnessedLog.witness = Witness(orders.journals / f"{orders.name}.{orders.life}.journal")
    vars(executor_app).update(RedisEventLog=WitnessedLog, open_queues=_short_lived)
    settings = ExecutorSettings(orders.name, slots=SLOTS, drain=timedelta(seconds=2), rhythm=RHYTHM)
    uvloop.run(
        executor_app.run_executor(
            Connection(orders.redis_url),
            settings,
            surroundings=Surroundings(slots=SLOTS),
            makers=makers(orders.name, orders.books),
        )
    )


def _short_lived(backend: Backend, redis: Redis) -> Queues:
    return replace(open_queues(backend, redis), attendance=RedisAttendance(redis, lifetime=LIFETIME))


def be_coordinator(orders: CoordinatorOrders) -> None:
    """Be a coordinator until killed, or until the wanted point is reached."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    hurry_the_pool()
    vars(coordinator_app)["STANDBY"] = STANDBY
    before(Coordinator, "go_round", lambda: _lead(orders))
    if orders.dies:
        after(*{**POINTS, **AT_THE_END}[orders.dies], fuse(orders.dies_at_call))
    site = coordinator_app.Site(orders.redis_url, orders.postgres_url, DEFAULT_SHARDS)
    uvloop.run(coordinator_app.run(site, replace(COORDINATOR, name=orders.name)))


def _lead(orders: CoordinatorOrders) -> None:
    orders.leader.write_text(orders.name)


def hand_in(submission: Submission) -> None:
    """Hand a batch in; whoever comes second leaves with an exit code of his own."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    vars(ledger_postgres)["ACCEPT_CHUNK"] = ACCEPT_CHUNK
    burn = fuse(submission.dies_at_call)
    if point := {**BEFORE_COMMIT, **AFTER_COMMIT}.get(submission.dies or ""):
        after(*point, burn)
    try:
        uvloop.run(_hand_in(submission, burn if submission.dies == READING else _nothing))
    except BatchExists:
        sys.exit(BATCH_EXISTS)


READING = "an evaluation is read"


def _nothing() -> None:
    """Live on."""


async def _hand_in(submission: Submission, on_read: Callable[[], None]) -> None:
    pool = make_pool(submission.postgres_url, size=2)
    await pool.open()
    try:
        ledger, read = PostgresLedger(pool, shards=DEFAULT_SHARDS), _read(submission, on_read)
        await accept(ledger, submission.batch, read, now=utc_now(), shards=DEFAULT_SHARDS)
    finally:
        await pool.close()


async def _read(submission: Submission, on_read: Callable[[], None]) -> AsyncIterator[NewEvaluation]:
    for evaluation in submission.evaluations:
        on_read()
        yield evaluation

import os as _os
_M = _os.environ.get("MUT", "")
if _M == "1":
    import executor.fold as _f, coordinator.attempts as _a
    _f._paid_for = lambda events: (None, {})
    _a.newest_answer = lambda logged: (None, 0)
elif _M == "2":
    async def _live(self, incarnations): return set(incarnations)
    RedisAttendance.live = _live
elif _M == "3":
    async def _none(self, batch_ids): return None
    Coordinator._clear_up = _none
elif _M == "4":
    from contextlib import asynccontextmanager as _acm
    @_acm
    async def _tx(pool):
        async with pool.connection() as conn:
            await conn.set_autocommit(True)
            yield conn
    ledger_postgres.transaction = _tx
elif _M == "5":
    async def _no(self, *a, **k): return None
    from coordinator.watching import Watch as _W
    _W.look_when_due = _no
