"""Kills an executor that has claimed tasks.

Recorded answers are there at once, so an executor holds each evaluation for some milliseconds only. All
executors are stopped with SIGSTOP, and the tasks are read that each has claimed and not finished. The first
that has such tasks stays stopped, as a machine that hangs, and is killed; the others continue. If none has,
all continue for some milliseconds and are stopped again.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

from redis.asyncio import Redis

from eventlog import payloads as p
from eventlog.codec import RawEntry, RejectedEntry, read_entry
from eventlog.lifecycle import CLOSING_TYPES
from eventlog.redis_streams import RedisEventLog
from scoreline.local.processes import ProcessManager
from taskqueue import keys
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from taskqueue.redis_streams import RedisTaskQueue
from taskqueue.tasks import Task

LOOK_EVERY = 0.005
SETTLING = 0.05
"""Seconds after which Redis has answered all that a frozen executor had asked."""
HANGING = 1.0
"""Seconds for which an executor hangs before it is killed."""


class TaskProgress(Enum):
    """The progress of an executor with a delivered task."""

    UNCLAIMED = "unclaimed"
    CLAIMED = "claimed"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class KilledExecutor:
    """An executor that was killed, and the evaluations it had claimed."""

    executor: str
    """Name of its process."""
    instance_id: str
    pid: int
    done: int
    """Evaluations of the batch that had ended."""
    claimed: tuple[str, ...]


@dataclass(slots=True)
class ExecutorKiller:
    """Waits until a third of a batch has ended, then kills one executor that has claimed tasks."""

    redis_url: str
    shards: int
    batch_id: str
    total: int
    print_line: Callable[[str], None]
    killed: KilledExecutor | None = None

    async def run(self, manager: ProcessManager) -> None:
        """Kill one executor, unless the batch is over before one was found with claimed tasks."""
        log = RedisEventLog.from_url(self.redis_url, shards=self.shards)
        try:
            if not await self._until_third(log.redis):
                return
            while await self._done(log.redis) < self.total:
                if await self._freeze_and_kill(log, manager):
                    return
                await asyncio.sleep(LOOK_EVERY)
        finally:
            await log.aclose()

    async def _until_third(self, redis: Redis) -> bool:
        """Wait; False if all evaluations have ended by then."""
        is_published = False
        while True:
            done = await self._done(redis)
            is_published = (
                is_published or done < self.total
            )  # before, its queue is as empty as after its end
            if is_published and done >= self.total // 3:
                return done < self.total
            await asyncio.sleep(LOOK_EVERY)

    async def _done(self, redis: Redis) -> int:
        [counts] = await RedisTaskQueue(redis).counts([self.batch_id])
        return self.total - counts.ready - counts.owned

    async def _freeze_and_kill(self, log: RedisEventLog, manager: ProcessManager) -> bool:
        """Stop the executors of this run; kill one that has claimed tasks, and continue the others."""
        names = {child.process.pid: child.name for child in manager.children if child.process}
        present = await RedisExecutorRegistry(log.redis).live()
        frozen = {each.pid: each for each in present if each.pid in names}
        try:
            _send(signal.SIGSTOP, frozen)
            await asyncio.sleep(SETTLING)
            killed = await self._found(log, frozen.values(), names)
            if killed is None:
                return False
            del frozen[killed.pid]
        finally:
            _send(signal.SIGCONT, frozen)
        await self._kill(killed)
        return True

    async def _found(
        self, log: RedisEventLog, frozen: Iterable[ExecutorInstance], names: Mapping[int, str]
    ) -> KilledExecutor | None:
        """Find a stopped executor that has claimed tasks."""
        done = await self._done(log.redis)
        for executor in frozen:
            if claimed := await self._claimed(log, executor.instance_id):
                return KilledExecutor(
                    names[executor.pid], executor.instance_id, executor.pid, done, claimed
                )
        return None

    async def _kill(self, killed: KilledExecutor) -> None:
        """Leave a stopped executor for a while, then kill it."""
        self.killed = killed
        try:
            self._report_stopped(killed)
            await asyncio.sleep(HANGING)
            self.print_line(
                f"kill -9 {killed.pid}: {killed.executor} is killed; its claimed tasks are retried"
            )
        finally:
            _send(signal.SIGKILL, [killed.pid])

    def _report_stopped(self, killed: KilledExecutor) -> None:
        self.print_line(
            f"kill -STOP {killed.pid}: {killed.executor} hangs, with {killed.done} of {self.total} done "
            f"and {len(killed.claimed)} claimed: {', '.join(killed.claimed)}"
        )

    async def _claimed(self, log: RedisEventLog, instance_id: str) -> tuple[str, ...]:
        """List what an executor has claimed and not finished; nothing if it holds an unclaimed task.

        Such a task is redelivered only after it was idle for long, and the demo would wait for that.
        """
        tasks = await _held(log.redis, self.batch_id, instance_id)
        streams = await log.read([task.evaluation_id for task in tasks], limit=100) if tasks else []
        found = [held(task, stream, instance_id) for task, stream in zip(tasks, streams, strict=True)]
        if TaskProgress.UNCLAIMED in found:
            return ()
        pairs = zip(tasks, found, strict=True)
        return tuple(task.evaluation_id for task, progress in pairs if progress is TaskProgress.CLAIMED)


def _send(which: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to processes, of which some may be gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, which)


async def _held(redis: Redis, batch_id: str, consumer: str) -> list[Task]:
    """List the tasks that are pending for a consumer."""
    name, tasks = keys.tasks_key(batch_id), []
    pending: list[Any] = await redis.xpending_range(name, keys.GROUP, "-", "+", 100, consumername=consumer)
    for each in pending:
        entries: Any = await redis.xrange(name, each["message_id"], each["message_id"])
        tasks += [Task(fields[b"id"].decode(), int(fields[b"attempt"])) for _, fields in entries]
    return tasks


def held(task: Task, stream: Sequence[RawEntry], instance_id: str) -> TaskProgress:
    """Read from the evaluation's stream how far an executor has come with a task."""
    read = [read_entry(task.evaluation_id, raw) for raw in stream]
    events = [one.event for one in read if not isinstance(one, RejectedEntry)]
    events = [event for event in events if event.attempt == task.attempt]
    if any(event.type in CLOSING_TYPES for event in events):
        return TaskProgress.FINISHED
    claims = [event.data for event in events if isinstance(event.data, p.Provisioning)]
    return (
        TaskProgress.CLAIMED
        if any(claim.executor == instance_id for claim in claims)
        else TaskProgress.UNCLAIMED
    )
