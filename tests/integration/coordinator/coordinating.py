"""A coordinator on real servers, with scripted executors and a storage worker.

async with house(redis_url, postgres_url) as here:
    await here.submit("nightly", 3)
    await here.run_cycle()
    await here.work("nightly", {1: "dies"})
    await here.run_cycle()
    assert await here.states("nightly") == ["2 queued", "1 completed", "1 completed"]

After each scenario, the tables of every batch must equal its log.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from coordinator.acceptance import accept
from coordinator.app import CoordinatorConfig, build
from coordinator.coordinator import Coordinator
from coordinator.metrics import CoordinatorMetrics
from coordinator.metrics_collector import MetricsCollector
from coordinator.operations import Operator
from coordinator.settings import CoordinatorSettings
from coordinator.submission import NewEvaluation
from domain.batch_spec import BatchSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.event_queue import AttemptLost, Claimed, EventQueue, OwnedAttempt, QueueSettings
from eventlog.keys import DEFAULT_SHARDS
from eventlog.redis_streams import RedisEventLog
from projections.database.connection import make_pool
from projections.ledger.batch import NewBatch
from projections.ledger.postgres import PostgresLedger
from projections.queries.monitoring import BatchMonitor
from projections.store.postgres import PostgresStore
from projections.verification.verify import verify
from storage_worker.storage import Storage
from taskqueue.backends import Backend, Queues, open_queues
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.tasks import Delivery
from tests.storage_world import GAP_POLICY

NO_TIME = timedelta(0)
CONSUMER = "executors"
AN_HOUR = timedelta(hours=1)
SPEC = BatchSpec("a batch", (TargetSpec("simulated", "simulated"),))
ANSWER = p.Responded(output="4", usage=p.TokenUsage(input_tokens=7), cost_usd=0.25)
DONE = p.Completed(verdict="passed", score=1.0, usage=ANSWER.usage, cost_usd=ANSWER.cost_usd)
SOON = {"reconcile_interval": NO_TIME, "unchanged_for": NO_TIME, "grace": NO_TIME}
"""A coordinator that never waits: each cycle processes everything."""

Outcomes = Mapping[int, str]
"""The outcome of some evaluations, by their number; all others complete."""


@dataclass(slots=True)
class House:
    """All that a batch needs to run to its end."""

    site: CoordinatorConfig
    log: RedisEventLog
    pool: AsyncConnectionPool
    conn: AsyncConnection[Any]
    writer: EventQueue
    settings: CoordinatorSettings
    coordinator: Coordinator
    ledger: PostgresLedger
    queues: Queues
    storage: Storage
    owned: dict[str, OwnedAttempt] = field(default_factory=dict)
    """The attempts that executors claimed last."""
    owners: dict[str, str] = field(default_factory=dict)
    births: Iterator[int] = field(default_factory=lambda: count(1))

    def another(self, **settings: Any) -> Coordinator:
        """Start one more coordinator, without any state."""
        chosen = CoordinatorSettings(**{**SOON, **settings})
        return build(self.site, chosen, self.log, self.pool)

    @property
    def operator(self) -> Operator:
        """Build the context of an operator's command: a process that has never run a cycle."""
        return Operator(self.ledger, self.another(name="ada"), "ada")

    async def submit(self, batch_id: str, cases: int, *, spec: BatchSpec = SPEC, **head: Any) -> None:
        """Submit a batch of some cases."""
        made = (NewEvaluation(p.Case(id=f"case-{n}", input=n)) for n in range(1, cases + 1))
        await self.submit_these(batch_id, list(made), spec=spec, **head)

    async def submit_these(
        self, batch_id: str, evaluations: Sequence[NewEvaluation], *, spec: BatchSpec = SPEC, **head: Any
    ) -> None:
        """Submit these evaluations as a batch."""

        async def each() -> AsyncIterator[NewEvaluation]:
            for one in evaluations:
                yield one

        batch = NewBatch(batch_id, spec, **{"traced": 1.0, **head})
        await accept(self.ledger, batch, each(), now=utc_now(), shards=DEFAULT_SHARDS)

    async def run_cycle(self, times: int = 1) -> None:
        """Run coordinator cycles."""
        for _ in range(times):
            await self.coordinator.run_cycle()

    async def takes(self, batch_id: str) -> list[Delivery]:
        """Consume all tasks there are, in order of their evaluations."""
        taken = await self.queues.tasks.consume(CONSUMER, {batch_id: 1_000}, block=NO_TIME)
        return sorted(taken, key=lambda delivery: delivery.task)

    async def claim(self, batch_id: str, number: int, *, attempt: int = 1) -> Claimed:
        """Claim an attempt, by an executor of its own."""
        key = evaluation_id(batch_id, number)
        born = next(self.births)
        self.owners[key] = f"executor-{born}"
        await self.beat(key)
        claim = p.Provisioning(executor=self.owners[key], nonce=f"nonce-{born}")
        claimed = await self.writer.claim(key, batch_id, attempt=attempt, claim=claim)
        self.owned[key] = claimed.attempt
        return claimed

    async def beat(self, key: str) -> None:
        """Send a heartbeat for an evaluation's executor."""
        await self.queues.executor_registry.heartbeat(ExecutorInstance(self.owners[key], self.owners[key]))

    async def die(self, key: str) -> None:
        """Deregister an evaluation's executor, as if it had died."""
        await self.queues.executor_registry.deregister(self.owners[key])

    async def work(self, batch_id: str, outcomes: Outcomes | None = None) -> list[int]:
        """Process all tasks there are; returns the numbers of their evaluations."""
        numbers = []
        for delivery in await self.takes(batch_id):
            number = int(delivery.task.evaluation_id.rpartition(".")[2])
            numbers.append(number)
            with suppress(AttemptLost):  # it was ended, or Redis was lost: drop it, as executors do
                claimed = await self.claim(batch_id, number, attempt=delivery.task.attempt)
                await self._live(claimed.attempt, outcome := (outcomes or {}).get(number, "completed"))
                if "dies" in outcome:
                    await self.die(delivery.task.evaluation_id)
            await self.queues.tasks.ack(CONSUMER, [delivery])
        await self.store(batch_id)
        return numbers

    @staticmethod
    async def _live(owned: OwnedAttempt, outcome: str) -> None:
        owned.record(p.Running(target="simulated"))
        for fact in _facts(outcome):
            owned.record(fact)
        await owned.acknowledged()

    async def work_until_over(self, batch_id: str, outcomes: Outcomes | None = None) -> None:
        """Run cycles and process tasks until the batch is over; fails if it does not end."""
        for _ in range(30):
            await self.run_cycle()
            _, is_over = await self.batch(batch_id)
            if is_over:
                return
            await self.work(batch_id, outcomes)
        raise AssertionError(f"{batch_id} is not over: {await self.states(batch_id)}")

    async def store(self, batch_id: str) -> None:
        """Let the storage worker read all streams of a batch."""
        ids = await self.ask("SELECT evaluation_id FROM evaluations WHERE batch_id = %s", batch_id)
        await self.storage.store([key for (key,) in ids])

    async def states(self, batch_id: str) -> list[str]:
        """Return the attempt and the state of each evaluation, in order."""
        found = await self.ask(
            "SELECT attempt || ' ' || state FROM evaluations WHERE batch_id = %s ORDER BY evaluation_id",
            batch_id,
        )
        return [words for (words,) in found]

    async def batch(self, batch_id: str) -> tuple[str, bool]:
        """Return the state of a batch, and whether it is over."""
        sought = "SELECT state, finished_at IS NOT NULL FROM batches WHERE batch_id = %s"
        [(state, is_over)] = await self.ask(sought, batch_id)
        return state, is_over

    async def error(self, batch_id: str, number: int) -> dict[str, str]:
        """Return the error of a failed evaluation."""
        sought = "SELECT error::text::jsonb FROM scorecards WHERE evaluation_id = %s"
        [(error,)] = await self.ask(sought, evaluation_id(batch_id, number))
        return dict(error)

    async def opening(self, batch_id: str, number: int, attempt: int) -> p.Queued:
        """Return the opening event of an attempt."""
        [state] = await self.ledger.evaluation_states([evaluation_id(batch_id, number)])
        logged = await self.ledger.stored([state.row])
        data = logged[evaluation_id(batch_id, number)][attempt, 0].data
        assert isinstance(data, p.Queued)
        return data

    async def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a query."""
        return await (await self.conn.execute(statement.encode(), values)).fetchall()

    async def alter(self, statement: str, *values: object) -> None:
        """Update one row."""
        assert (await self.conn.execute(statement.encode(), values)).rowcount == 1

    async def keys(self, pattern: str) -> list[str]:
        """List the keys in Redis."""
        found: Any = await self.log.redis.keys(pattern)
        return sorted(key.decode() for key in found)

    async def lose_redis(self) -> None:
        """Flush Redis, as a loss of all its data."""
        await self.log.redis.flushall()

    async def check(self) -> None:
        """Assert that the tables equal the log, for every batch there is."""
        for (batch_id,) in await self.ask("SELECT batch_id FROM batches"):
            await self.store(batch_id)
            async with await AsyncConnection.connect(self.site.postgres_url) as conn:
                verified = await verify(conn, batch_id, shards=DEFAULT_SHARDS)
            assert verified.differences == []


def _facts(outcome: str) -> list[Any]:
    fault = p.ErrorDetail(kind="transient", message="the model looked away")
    match outcome:
        case "completed":
            return [ANSWER, DONE]
        case "failed":
            return [p.Failed(error=p.ErrorDetail(kind="permanent", message="no such model"))]
        case "retrying":
            return [p.Retrying(error=fault, retry_at=utc_now())]
        case "retrying later":
            return [p.Retrying(error=fault, retry_at=utc_now() + AN_HOUR)]
        case "answers and dies" | "answers":
            return [ANSWER]
        case "dies" | "goes on":
            return []
        case _:
            raise ValueError(outcome)


@asynccontextmanager
async def house(redis_url: str, postgres_url: str, **settings: Any) -> AsyncIterator[House]:
    """Yield a coordinator with its stores, and compare tables and log afterwards."""
    chosen = CoordinatorSettings(**{**SOON, **settings})
    site = CoordinatorConfig(redis_url, postgres_url, DEFAULT_SHARDS)
    async with AsyncExitStack() as stack:
        log = RedisEventLog.from_url(redis_url, shards=DEFAULT_SHARDS)
        stack.push_async_callback(log.aclose)
        pool: AsyncConnectionPool = await stack.enter_async_context(make_pool(postgres_url, size=4))
        conn = await stack.enter_async_context(await AsyncConnection.connect(postgres_url, autocommit=True))
        quick = QueueSettings(linger=0.0)
        writer = await stack.enter_async_context(EventQueue(log, source=CONSUMER, settings=quick))
        here = House(
            *(site, log, pool, conn, writer, chosen, build(site, chosen, log, pool)),
            PostgresLedger(pool, shards=DEFAULT_SHARDS),
            open_queues(Backend.REDIS, log.redis),
            Storage(log, PostgresStore(pool), GAP_POLICY),
        )
        yield here
        await here.check()


def observer_of(here: House) -> MetricsCollector:
    """Build a coordinator that collects metrics."""
    return MetricsCollector(CoordinatorMetrics(), BatchMonitor(here.pool), here.queues)
