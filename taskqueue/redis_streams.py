"""The task queue on Redis Streams: one stream a line, one group, a sorted set for what is delayed.

A message is held by the consumer in whose pending list it is, and every script that acts for a holder
looks there first. Finished messages are deleted, so a stream's length is what is ready and what is held.
Delayed tasks are moved to their stream by whoever asks for tasks, on the server's clock. A stream or
group that is missing, because Redis has lost it, is made anew at 0 by whoever asks first.
"""

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from redis.asyncio import Redis

from eventlog.key_quarantine import is_wrong_type, quarantine
from eventlog.scripts import Call, Script
from taskqueue import keys, telemetry
from taskqueue.entries import as_dead_letter, as_task
from taskqueue.queue_layout import DEFAULT_PARTITION, queue_name, split_queue
from taskqueue.refusals import QUEUE_ERRORS, answers, means_gone
from taskqueue.tasks import DEAD_LETTERS_KEPT, DEAD_LETTERS_STAY, Counts, DeadLetter, Delivery, Task

T = TypeVar("T")
logger = logging.getLogger(__name__)

CHUNK = 1_000
"""Tasks in one call of a script: Redis serves nobody else meanwhile, so each takes some milliseconds."""

LONGEST_BLOCK = 4.0
"""Seconds; the socket itself gives up after five."""

EMPTY_STAYS = timedelta(minutes=10)
"""How long a stream lives that was made by waiting on it, until something is added."""

HERE = Path(__file__).parent
_ENQUEUE = Script(HERE / "enqueue.lua")
_TAKE = Script(HERE / "take.lua")
_TAKE_OVER = Script(HERE / "take_over.lua")
_ACK = Script(HERE / "ack.lua")
_REQUEUE = Script(HERE / "requeue.lua")
_DEAD_LETTER = Script(HERE / "dead_letter.lua")
_EXTEND = Script(HERE / "extend.lua")
_COUNTS = Script(HERE / "counts.lua")


class RedisTaskQueue:
    """`TaskQueue` on a Redis or Valkey server."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        telemetry.begin()

    async def enqueue(self, queue: str, task: Task, *, delay: timedelta = timedelta(0)) -> str:
        """Add a task, to be handed out now or after a while; returns the id of its message."""
        return (await self._enqueue(queue, [task], delay))[0]

    async def enqueue_batch(self, queue: str, tasks: Sequence[Task]) -> list[str]:
        """Add many tasks at once; returns the ids of their messages."""
        return await self._enqueue(queue, tasks, timedelta(0))

    async def _enqueue(self, queue: str, tasks: Sequence[Task], delay: timedelta) -> list[str]:
        calls: list[Call] = []
        for chunk in _chunks(tasks):
            fields = [field for task in chunk for field in task]
            calls.append((_pair(queue), [_milliseconds(delay), uuid4().hex, *fields]))
        replies = await self._run(_ENQUEUE, calls)
        telemetry.enqueued.add(len(tasks))
        return [message.decode() for reply in replies for message in reply]

    async def consume(
        self, consumer: str, wanted: Mapping[str, int], *, block: timedelta
    ) -> list[Delivery]:
        """Take up to so many tasks of each line; waits at most `block` for the first of them."""
        wanted = {queue: limit for queue, limit in wanted.items() if limit > 0}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + block.total_seconds()
        while wanted:
            taken, due = await self._take(consumer, wanted)
            left = deadline - loop.time()
            if not taken and left > 0:
                taken = await self._wait(consumer, wanted, min(left, due, LONGEST_BLOCK))
            if taken or left <= 0:
                return taken
        return []

    async def _take(self, consumer: str, wanted: Mapping[str, int]) -> tuple[list[Delivery], float]:
        """Take what is ready; says, too, in how many seconds the next delayed task is due."""
        stays = int(EMPTY_STAYS.total_seconds())
        calls: list[Call] = [
            (_pair(queue), [keys.GROUP, consumer, limit, CHUNK, stays]) for queue, limit in wanted.items()
        ]
        replies = await self._run(_TAKE, calls)
        due = min((wait / 1000 for _, wait in replies if wait >= 0), default=float("inf"))
        found = zip(wanted, (entries for entries, _ in replies), strict=True)
        return await self._read(consumer, found), due

    async def _wait(self, consumer: str, wanted: Mapping[str, int], seconds: float) -> list[Delivery]:
        """Take what comes first, in whichever line."""
        queues = {keys.tasks_key(queue).encode(): queue for queue in wanted}
        options = ("COUNT", min(wanted.values()), "BLOCK", max(1, int(seconds * 1000)))
        everything_new = (">",) * len(queues)
        with QUEUE_ERRORS:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.response_callbacks = {}  # raw: the scripts' replies are, too
                pipe.execute_command(
                    "XREADGROUP",
                    "GROUP",
                    keys.GROUP,
                    consumer,
                    *options,
                    "STREAMS",
                    *queues,
                    *everything_new,
                )
                reply = (await pipe.execute(raise_on_error=False))[0]
            if means_gone(reply) or (
                is_wrong_type(reply) and await quarantine(self._redis, map(keys.tasks_key, wanted))
            ):
                return []
            if isinstance(reply, Exception):
                raise reply
        found = dict(reply or {})
        return await self._read(consumer, ((queues[name], found[name]) for name in found))

    async def _read(self, consumer: str, found: Iterable[tuple[str, list[Any]]]) -> list[Delivery]:
        """Read entries; what is no task is let go, since it would come back for ever."""
        deliveries = []
        for queue, entries in found:
            for message, fields, *claim in entries:
                task = as_task(fields)
                if task:
                    deliveries.append(_delivery(queue, message, task, *claim))
                else:
                    await self._drop(consumer, queue, message.decode())
        return deliveries

    async def _drop(self, consumer: str, queue: str, message: str) -> None:
        logger.error("no task, dropped", extra={"batch_id": split_queue(queue)[0], "message_id": message})
        await self._run(_ACK, [([keys.tasks_key(queue)], [keys.GROUP, consumer, message])])

    async def take_over(
        self, consumer: str, queues: Sequence[str], *, idle: timedelta, limit: int
    ) -> list[Delivery]:
        """Take tasks whose consumer has neither finished nor extended them for so long."""
        taken: list[Delivery] = []
        for queue in queues:
            if len(taken) < limit:
                arguments = [keys.GROUP, consumer, _milliseconds(idle), limit - len(taken)]
                replies = await self._run(_TAKE_OVER, [([keys.tasks_key(queue)], arguments)])
                taken += await self._read(consumer, [(queue, replies[0])])
        telemetry.count_claims(each.claimed_from for each in taken)
        return taken

    async def ack(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        """Let finished tasks go; returns how many of them this consumer still held."""
        held: int = sum(await self._run(_ACK, _holders_calls(consumer, deliveries)))
        telemetry.acked.add(held)
        return held

    async def requeue(self, consumer: str, delivery: Delivery, *, delay: timedelta = timedelta(0)) -> bool:
        """Give a task back, to be handed out again now or after a while; False if it was no longer held."""
        arguments = [keys.GROUP, consumer, delivery.id, *delivery.task, _milliseconds(delay)]
        held = bool((await self._run(_REQUEUE, [(_pair(delivery.queue), arguments)]))[0])
        telemetry.nacked.add(held, telemetry.RETRY)
        return held

    async def dead_letter(self, consumer: str, delivery: Delivery, *, reason: str) -> bool:
        """Let a task go, and remember that it was given up; False if it was no longer held."""
        names = [keys.tasks_key(delivery.queue), keys.dead_letters_key(delivery.batch_id)]
        arguments = [keys.GROUP, consumer, delivery.id, *delivery.task, reason, DEAD_LETTERS_KEPT]
        held = bool((await self._run(_DEAD_LETTER, [(names, arguments)]))[0])
        telemetry.nacked.add(held, telemetry.DEAD_LETTER)
        return held

    async def extend(self, consumer: str, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Say that tasks are still being worked on; returns those that this consumer still holds."""
        calls = list(_holders_calls(consumer, deliveries))
        replies = await self._run(_EXTEND, calls)
        held = {
            (names[0], message.decode())
            for (names, _), reply in zip(calls, replies, strict=True)
            for message in reply
        }
        return [each for each in deliveries if (keys.tasks_key(each.queue), each.id) in held]

    async def counts(self, queues: Sequence[str]) -> list[Counts]:
        """Say how much of each line is ready, delayed, and in somebody's hands."""
        replies = await self._run(_COUNTS, [(_pair(queue), [keys.GROUP]) for queue in queues])
        return [Counts(*reply) for reply in replies]

    async def dead_letters(self, batch_id: str, *, limit: int) -> list[DeadLetter]:
        """List what was given up, newest first."""
        with QUEUE_ERRORS:
            entries: Any = await self._redis.xrevrange(keys.dead_letters_key(batch_id), count=limit)
        return [as_dead_letter(*entry) for entry in entries]

    async def forget(self, batch_id: str, partitions: Sequence[str] = (DEFAULT_PARTITION,)) -> None:
        """Remove all that these lines of a batch hold; its dead letters stay for a day."""
        with QUEUE_ERRORS:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.unlink(
                    *(key for partition in partitions for key in _pair(queue_name(batch_id, partition)))
                )
                pipe.expire(keys.dead_letters_key(batch_id), DEAD_LETTERS_STAY)
                await answers(pipe)

    async def _run(self, script: Script, calls: Iterable[Call]) -> list[Any]:
        with QUEUE_ERRORS:
            return await script.run(self._redis, list(calls))


def _delivery(queue: str, message: bytes, task: Task, count: int = 1, holder: bytes = b"") -> Delivery:
    return Delivery(queue, message.decode(), task, count, holder.decode())


def _pair(queue: str) -> list[str]:
    return [keys.tasks_key(queue), keys.delayed_key(queue)]


def _holders_calls(consumer: str, deliveries: Sequence[Delivery]) -> Iterator[Call]:
    """Ask something about the messages of each line, for their holder."""
    messages: dict[str, list[str]] = defaultdict(list)
    for delivery in deliveries:
        messages[delivery.queue].append(delivery.id)
    for queue, ids in messages.items():
        for chunk in _chunks(ids):
            yield [keys.tasks_key(queue)], [keys.GROUP, consumer, *chunk]


def _chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(items), CHUNK):
        yield items[at : at + CHUNK]


def _milliseconds(span: timedelta) -> int:
    return max(0, math.ceil(span / timedelta(milliseconds=1)))
