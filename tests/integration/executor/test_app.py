"""Executors on a real Redis: in this process, and as the command."""

import asyncio
import signal
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec, pack
from eventlog import payloads as p
from eventlog.codec import decode_body
from eventlog.events import Event
from eventlog.log import Append
from eventlog.redis_streams import RedisEventLog, connect
from executor.app import run_executor
from executor.contract import ExecutionEnvironment
from executor.settings import ExecutorSettings, RedisSettings
from taskqueue.backends import Backend, Queues, open_queues
from taskqueue.batch_registry import BatchEntry, BatchState
from taskqueue.tasks import Task
from tests.builders import BATCH, event, records
from tests.integration.worker import SCORELINE, environment, scoreline
from tests.waiting import until

RIGHT = TargetSpec("simulated", "simulated", {"pass_rate": 1.0, "cost_usd": 0.25})
SLOW = TargetSpec("simulated", "simulated", {"latency": 3_600})
EXACT = EvaluatorSpec("exact", "exact")
WHOLE_LIFE = "queued provisioning running responded completed"


@dataclass(frozen=True, slots=True)
class Redis:
    """A real server, with the operations of a coordinator."""

    url: str
    log: RedisEventLog
    queues: Queues

    async def submit(self, number: int, *targets: TargetSpec) -> list[str]:
        ids = [f"{BATCH}.{each:08}" for each in range(1, number + 1)]
        await self.register(BatchState.RUNNING, *targets)
        await self.log.append([Append(each, records([_opening(each)]), epoch="") for each in ids])
        await self.queues.tasks.enqueue_batch(BATCH, [Task(each, 1) for each in ids])
        return ids

    async def register(self, state: BatchState, *targets: TargetSpec) -> None:
        spec = BatchSpec("batch", targets, evaluators=(EXACT,), timeout=7_200.0)
        await self.queues.batch_registry.upsert(BatchEntry(BATCH, state), pack(spec))

    async def events(self, *ids: str) -> list[list[Event]]:
        streams = await self.log.read(ids, limit=100)
        return [[decode_body(fields[7]) for _, fields in stream] for stream in streams]

    async def stories(self, *ids: str) -> set[str]:
        return {" ".join(each.type for each in events) for events in await self.events(*ids)}

    async def is_drained(self) -> bool:
        [counts] = await self.queues.tasks.counts([BATCH])
        return counts.is_drained


def _opening(evaluation_id: str) -> Event:
    case = p.Case(id=evaluation_id, input="2 + 2", expected="4")
    return event(p.Queued(case=case), evaluation_id=evaluation_id)


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = connect(redis_url)
    yield Redis(redis_url, RedisEventLog(client), open_queues(Backend.REDIS, client))
    await client.aclose()


async def test_a_batch_is_completed(redis):
    """Every evaluation has all its events in the log, and the queue is empty."""
    ids = await redis.submit(300, RIGHT)
    settings = ExecutorSettings("worker", slots=50, once=True)
    await run_executor(RedisSettings(redis.url), settings, environment=ExecutionEnvironment())
    assert await redis.stories(*ids) == {WHOLE_LIFE}
    ends = [events[-1].data for events in await redis.events(*ids)]
    assert {(end.verdict, end.score, end.cost_usd) for end in ends} == {("passed", 1.0, 0.25)}
    assert await redis.is_drained()
    assert await redis.queues.executor_registry.live() == []


async def test_two_executors_share_a_batch_and_no_attempt_runs_twice(redis):
    """A claim has one owner; both executors had some."""
    ids = await redis.submit(300, RIGHT)
    both = [ExecutorSettings(name, slots=8, once=True) for name in ("one", "two")]
    await asyncio.gather(
        *(run_executor(RedisSettings(redis.url), each, environment=ExecutionEnvironment()) for each in both)
    )
    assert await redis.stories(*ids) == {WHOLE_LIFE}
    owners = {events[1].data.executor.split("-")[0] for events in await redis.events(*ids)}
    assert owners == {"one", "two"}


def test_once_the_command_ends_when_no_task_is_left(redis_url):
    """Also where there was none."""
    ended = scoreline("worker", "start", "--once", EVAL_REDIS_URL=redis_url)
    assert ended.returncode == 0, ended.stderr


def test_an_invalid_name_is_rejected():
    """It is part of every claim."""
    ended = scoreline("worker", "start", "--id", "a\nb")
    assert ended.returncode == 2
    assert "printable" in ended.stderr


@asynccontextmanager
async def command(redis: Redis, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    environ = environment(EVAL_REDIS_URL=redis.url)
    started = await create_subprocess_exec(
        SCORELINE, "worker", "start", *arguments, env=environ, stderr=PIPE, stdin=PIPE
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def test_the_command_needs_no_database_and_shuts_down_gracefully(redis):
    """At SIGTERM it deregisters and exits with 0."""
    ids = await redis.submit(20, RIGHT)
    async with command(redis, "--concurrency", "5", "--id", "mine") as worker:
        await until(redis.is_drained, timeout=30)
        [present] = await redis.queues.executor_registry.live()
        assert (present.name, present.slots) == ("mine", 5)
        worker.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(worker.wait(), 20) == 0
    assert await redis.stories(*ids) == {WHOLE_LIFE}
    assert await redis.queues.executor_registry.live() == []


async def test_a_stopped_batch_frees_the_slots_of_the_command(redis):
    """Active tasks are interrupted and acked."""
    ids = await redis.submit(2, SLOW)
    async with command(redis):
        await until(lambda: _all_running(redis, ids), timeout=30)
        await redis.register(BatchState.STOPPED, SLOW)
        await until(redis.is_drained, timeout=20)
    assert await redis.stories(*ids) == {"queued provisioning running"}


async def test_a_second_signal_exits_immediately(redis):
    """Without a drain."""
    ids = await redis.submit(1, SLOW)
    async with command(redis) as worker:
        await until(lambda: _all_running(redis, ids), timeout=30)
        worker.send_signal(signal.SIGINT)
        await asyncio.wait_for(_logs(worker, b"draining"), 20)
        worker.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(worker.wait(), 20) == 130


async def _all_running(redis: Redis, ids: list[str]) -> bool:
    return await redis.stories(*ids) == {"queued provisioning running"}


async def _logs(worker: asyncio.subprocess.Process, text: bytes) -> None:
    assert worker.stderr
    while text not in await worker.stderr.readline():
        pass
