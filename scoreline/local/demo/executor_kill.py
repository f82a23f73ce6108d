"""Killing an executor that has work in hand.

Recorded answers are there at once, so an executor holds each evaluation for some milliseconds only. To hit
one for certain all are frozen, and while none can move each is asked for what it has claimed and not
finished. The first with something in hand stays frozen, as a machine that hangs, and is killed; the others
go on unharmed. Where none has, all go on for some milliseconds and are frozen again.
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


class Held(Enum):
    """How far an executor has come with a task that it holds."""

    UNCLAIMED = "unclaimed"
    IN_HAND = "in hand"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Struck:
    """An executor that was killed, and what it had in hand."""

    executor: str
    """What its process is called here."""
    instance_id: str
    pid: int
    done: int
    """How much of the batch was done."""
    in_hand: tuple[str, ...]


@dataclass(slots=True)
class Striker:
    """Waits until a third of a batch is done, then kills one executor that has something in hand."""

    redis_url: str
    shards: int
    batch_id: str
    total: int
    say: Callable[[str], None]
    struck: Struck | None = None

    async def strike(self, manager: ProcessManager) -> None:
        """Kill one, unless the batch is over before anybody was found with something in hand."""
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
        """Wait; False if all is done by then."""
        is_told = False
        while True:
            done = await self._done(redis)
            is_told = is_told or done < self.total  # before, its queue is as empty as after its end
            if is_told and done >= self.total // 3:
                return done < self.total
            await asyncio.sleep(LOOK_EVERY)

    async def _done(self, redis: Redis) -> int:
        [counts] = await RedisTaskQueue(redis).counts([self.batch_id])
        return self.total - counts.ready - counts.delayed - counts.owned

    async def _freeze_and_kill(self, log: RedisEventLog, manager: ProcessManager) -> bool:
        """Freeze our executors; kill one that has something in hand, and let the others go on."""
        names = {child.process.pid: child.name for child in manager.children if child.process}
        present = await RedisExecutorRegistry(log.redis).live()
        frozen = {each.pid: each for each in present if each.pid in names}
        try:
            _send(signal.SIGSTOP, frozen)
            await asyncio.sleep(SETTLING)
            struck = await self._found(log, frozen.values(), names)
            if struck is None:
                return False
            del frozen[struck.pid]
        finally:
            _send(signal.SIGCONT, frozen)
        await self._kill(struck)
        return True

    async def _found(
        self, log: RedisEventLog, frozen: Iterable[ExecutorInstance], names: Mapping[int, str]
    ) -> Struck | None:
        """Find an executor with something in hand among those that can't move."""
        done = await self._done(log.redis)
        for executor in frozen:
            if in_hand := await self._in_hand(log, executor.instance_id):
                return Struck(names[executor.pid], executor.instance_id, executor.pid, done, in_hand)
        return None

    async def _kill(self, struck: Struck) -> None:
        """Let a frozen executor hang for a while, then kill it."""
        self.struck = struck
        try:
            self._say_frozen(struck)
            await asyncio.sleep(HANGING)
            self.say(
                f"kill -9 {struck.pid}: {struck.executor} dies; a coordinator will find what it had in hand"
            )
        finally:
            _send(signal.SIGKILL, [struck.pid])

    def _say_frozen(self, struck: Struck) -> None:
        self.say(
            f"kill -STOP {struck.pid}: {struck.executor} hangs, with {struck.done} of {self.total} done "
            f"and {len(struck.in_hand)} in hand: {', '.join(struck.in_hand)}"
        )

    async def _in_hand(self, log: RedisEventLog, instance_id: str) -> tuple[str, ...]:
        """Name what an executor has claimed and not finished; nothing if it holds a task without a claim.

        Such a task would keep everybody waiting until it was idle for long, and there is nothing to see.
        """
        tasks = await _held(log.redis, self.batch_id, instance_id)
        streams = await log.read([task.evaluation_id for task in tasks], limit=100) if tasks else []
        found = [held(task, stream, instance_id) for task, stream in zip(tasks, streams, strict=True)]
        if Held.UNCLAIMED in found:
            return ()
        pairs = zip(tasks, found, strict=True)
        return tuple(task.evaluation_id for task, how in pairs if how is Held.IN_HAND)


def _send(which: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to processes, of which some may be gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, which)


async def _held(redis: Redis, batch_id: str, consumer: str) -> list[Task]:
    """Ask the queue which tasks a consumer holds."""
    name, tasks = keys.tasks_key(batch_id), []
    pending: list[Any] = await redis.xpending_range(name, keys.GROUP, "-", "+", 100, consumername=consumer)
    for each in pending:
        entries: Any = await redis.xrange(name, each["message_id"], each["message_id"])
        tasks += [Task(fields[b"id"].decode(), int(fields[b"attempt"])) for _, fields in entries]
    return tasks


def held(task: Task, stream: Sequence[RawEntry], instance_id: str) -> Held:
    """Say how far an executor has come with a task, from the evaluation's stream."""
    read = [read_entry(task.evaluation_id, raw) for raw in stream]
    events = [one.event for one in read if not isinstance(one, RejectedEntry)]
    events = [event for event in events if event.attempt == task.attempt]
    if any(event.type in CLOSING_TYPES for event in events):
        return Held.FINISHED
    claims = [event.data for event in events if isinstance(event.data, p.Provisioning)]
    return Held.IN_HAND if any(claim.executor == instance_id for claim in claims) else Held.UNCLAIMED
