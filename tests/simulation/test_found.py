"""Bugs found by simulator and state machine, each in its smallest form."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from time import monotonic

import pytest

from coordinator.acceptance import accept
from coordinator.coordinator import Coordinator, CoordinatorPorts
from coordinator.operations import Operator
from coordinator.publisher import Publisher
from coordinator.settings import CoordinatorSettings
from coordinator.submission import NewEvaluation
from domain.batch_spec import BatchSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.codec import RawEntry, encode
from eventlog.event_queue import EventQueue
from eventlog.events import EventKey
from eventlog.lifecycle import Phase
from eventlog.log import Append, AppendResponse
from eventlog.memory import MemoryEventLog
from eventlog.timeline import Cursor
from projections.database.errors import DatabaseUnavailable
from projections.folds.change import Change, EvaluationRow, StoredEvent
from projections.ledger.batch import NewBatch
from projections.ledger.memory import MemoryLedger
from projections.store.contract import CommitResult
from projections.store.memory import MemoryStore
from storage_worker.storage import Storage
from taskqueue.memory import MemoryBatchRegistry, MemoryExecutorRegistry, MemoryTaskQueue
from taskqueue.tasks import Task
from tests.builders import BATCH, CASE, EVALUATION, event, history, records
from tests.storage_world import GAP_POLICY, GAP_TIMEOUT, World


class Forgetful(MemoryStore):
    """Tables whose next response to a commit is lost."""

    loses_reply = False

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        committed = await super().commit(changes)
        if self.loses_reply:
            self.loses_reply = False
            raise DatabaseUnavailable("no reply")
        return committed


async def test_evaluations_ended_by_an_interrupted_sweep_are_released_by_the_next():
    """No sweep would find them again: their streams, and their writers' tails, would stay for ever."""
    world, tables = World(), Forgetful(lambda: world.now_ms / 1000)
    storage = Storage(world.log, tables, GAP_POLICY)
    opening, _, *rest = history("queued provisioning running completed")
    for part in ([opening], rest):
        await world.log.append([Append(EVALUATION, records(part), "")])
    await storage.store([EVALUATION])
    world.wait(GAP_TIMEOUT * 2)
    tables.loses_reply = True
    with pytest.raises(DatabaseUnavailable):
        await storage.sweep(unchanged_for=0, page=10)
    assert tables.evaluations[EVALUATION].row.cursor == Cursor(1, 3, Phase.COMPLETED)
    await storage.sweep(unchanged_for=0, page=10)
    assert await world.log.committed([EVALUATION]) == [(1, 3)]
    world.wait(GAP_TIMEOUT * 3)
    assert await world.log.committed([EVALUATION]) == [None]


async def test_events_after_a_rejected_opening_are_rejected_after_a_loss_of_redis():
    """Postgres has the rejection; otherwise the event would wait for ever."""
    world = World()
    world.xadd(event("queued"), event("timed_out", attempt=2), event("queued:lost", attempt=3))
    await world.storage().store([EVALUATION])
    world.log.lose_everything()
    world.xadd(event("provisioning", attempt=3, sequence=1))
    await world.storage().store([EVALUATION])
    assert world.verdicts() == {
        (1, 0): "applied",
        (2, 0): "applied",
        (3, 0): "rejected",
        (3, 1): "rejected",
    }


class Behind:
    """A log whose newest entry has not been read yet."""

    def __init__(self, log: MemoryEventLog) -> None:
        self.shards, self.committed, self.closing, self.settle, self.now_ms = (
            log.shards,
            log.committed,
            log.closing,
            log.settle,
            log.now_ms,
        )
        self._log = log

    async def read(self, evaluation_ids: Sequence[str], *, limit: int) -> list[list[RawEntry]]:
        return [stream[:-1] for stream in await self._log.read(evaluation_ids, limit=limit)]


class Overtaken(MemoryStore):
    """Lets another worker commit between the read of the rows and that of the events, once."""

    faster: Storage | None = None

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
        faster, self.faster = self.faster, None
        if faster:
            await faster.store([EVALUATION])
        return await super().stored(rows)


async def test_a_commit_of_another_worker_between_two_reads_is_not_taken_for_a_gap():
    """The next event would be left for the sweep, although its wake-up is acknowledged."""
    world, tables = World(), Overtaken(lambda: 0.0)
    storage = Storage(world.log, tables, GAP_POLICY)
    events = history("queued provisioning running completed")
    world.xadd(*events[:2])
    await storage.store([EVALUATION])
    world.xadd(event("provisioning", sequence=1, source="rival"), *events[2:])
    tables.faster = Storage(Behind(world.log), tables, GAP_POLICY)
    await storage.store([EVALUATION])
    assert tables.evaluations[EVALUATION].row.cursor == Cursor(1, 3, Phase.COMPLETED)
    assert storage.counts.lost_races == 1


class Unhurried(MemoryEventLog):
    """A log that is slow."""

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        await asyncio.sleep(0.001)
        return await super().append(calls)


async def test_a_paid_answer_is_sent_although_its_attempt_is_lost_during_the_close():
    """A queue that closes also waits for events that are added while it is closing."""
    log = Unhurried(lambda: 0)
    await log.append([Append(EVALUATION, records([event("queued")]), "")])
    async with EventQueue(log, source="executor-1") as queue:
        claim = p.Provisioning(executor="executor-1", nonce="1")
        claimed = await queue.claim(EVALUATION, BATCH, attempt=1, claim=claim)
        await log.append([Append(EVALUATION, records([event("cancelled", attempt=2)]), "")])
        claimed.attempt.record(p.Running(target="simulated"))
        claimed.attempt.record(p.Responded(output="4", cost_usd=0.5))
    [stream] = await log.read([EVALUATION], limit=9)
    assert [fields[5] for _, fields in stream] == [b"queued", b"provisioning", b"cancelled", b"responded"]
    assert queue.outbox.depth == 0


async def test_events_sent_before_a_terminal_event_of_the_coordinator_are_stored():
    """Their wake-up may be lost, and no sweep reads ended evaluations: the terminal event sends another."""
    world = World()
    ending = event("cancelled", attempt=2)
    await world.log.append([Append(EVALUATION, records(history("queued provisioning running")), "")])
    world.log.wake_ups = [[] for _ in world.log.wake_ups]
    publisher = Publisher(world.log, MemoryTaskQueue(lambda: 0.0))
    await publisher.publish(None, [([(ending, encode(ending))], "")])
    assert EVALUATION in [key for shard in world.log.wake_ups for key in shard]


SPEC = BatchSpec("batch", (TargetSpec("simulated", "simulated"),))


async def one_case() -> AsyncIterator[NewEvaluation]:
    """Submit one evaluation."""
    yield NewEvaluation(CASE)


async def test_a_task_that_came_after_the_end_of_its_batch_is_removed():
    """A slow coordinator may enqueue tasks after another one has finished the batch."""
    world = World()
    ledger = MemoryLedger(world.tables, shards=world.log.shards, now=utc_now)
    queue, batch_registry = MemoryTaskQueue(monotonic), MemoryBatchRegistry()
    executor_registry = MemoryExecutorRegistry(monotonic)
    ports = CoordinatorPorts(world.log, ledger, queue, batch_registry, executor_registry)
    at_once = CoordinatorSettings(unregister_delay=timedelta(0))
    slow, other = (Coordinator(ports, settings=at_once) for _ in range(2))
    await accept(ledger, NewBatch(BATCH, SPEC), one_case(), now=utc_now(), shards=world.log.shards)
    await slow.run_cycle()
    await Operator(ledger, other).cancel(BATCH)
    await batch_registry.unregister(BATCH)
    await queue.enqueue_batch(BATCH, [Task(evaluation_id(BATCH, 1), 1)])
    await slow.run_cycle()
    assert [counts.is_drained for counts in await queue.counts([BATCH])] == [True]
