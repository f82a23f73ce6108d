"""The task queue on Redis Streams: one stream for each queue, one consumer group.

A consumer owns the messages in its pending list, and every script that acts for a consumer checks that list
first. Finished messages are deleted, so the length of a stream is the number of ready and owned tasks. A
consumer that finds the stream or the group missing, because Redis has lost it, creates it again at 0.
"""

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from redis.asyncio import Redis
from typing_extensions import override

from eventlog.key_quarantine import is_wrong_type, quarantine
from eventlog.scripts import Call, Script
from taskqueue import keys, telemetry
from taskqueue.queue_layout import DEFAULT_PARTITION, queue_name, split_queue
from taskqueue.refusals import QUEUE_ERRORS, answers, means_gone
from taskqueue.tasks import Delivery, QueueCounts, Task, TaskQueue

T = TypeVar("T")
logger = logging.getLogger(__name__)

CHUNK = 1_000
"""Tasks in one call of a script: Redis serves no other client meanwhile, so a call takes milliseconds."""

LONGEST_BLOCK = 4.0
"""Seconds; the socket times out after five."""

EMPTY_STREAM_TTL = timedelta(minutes=10)
"""TTL of a stream that a waiting consumer created, until a task is added."""

HERE = Path(__file__).parent
_ENQUEUE = Script(HERE / "enqueue.lua")
_TAKE = Script(HERE / "take.lua")
_CLAIM_STALLED = Script(HERE / "claim_stalled.lua")
_ACK = Script(HERE / "ack.lua")
_NACK = Script(HERE / "nack.lua")
_EXTEND = Script(HERE / "extend.lua")
_COUNTS = Script(HERE / "counts.lua")


class RedisTaskQueue(TaskQueue):
    """`TaskQueue` on a Redis or Valkey server."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        telemetry.begin()

    @override
    async def enqueue(self, queue: str, task: Task) -> str:
        return (await self.enqueue_batch(queue, [task]))[0]

    @override
    async def enqueue_batch(self, queue: str, tasks: Sequence[Task]) -> list[str]:
        key = [keys.tasks_key(queue)]
        calls: list[Call] = [(key, [field for task in chunk for field in task]) for chunk in _chunks(tasks)]
        replies = await self._run(_ENQUEUE, calls)
        telemetry.enqueued.add(len(tasks))
        return [message.decode() for reply in replies for message in reply]

    async def consume(
        self, consumer: str, wanted: Mapping[str, int], *, block: timedelta
    ) -> list[Delivery]:
        """Take up to `wanted` tasks of each queue; waits at most `block` for the first of them."""
        wanted = {queue: limit for queue, limit in wanted.items() if limit > 0}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + block.total_seconds()
        while wanted:
            deliveries = await self._take(consumer, wanted)
            left = deadline - loop.time()
            if not deliveries and left > 0:
                deliveries = await self._wait(consumer, wanted, min(left, LONGEST_BLOCK))
            if deliveries or left <= 0:
                return deliveries
        return []

    async def _take(self, consumer: str, wanted: Mapping[str, int]) -> list[Delivery]:
        """Take ready tasks, without waiting."""
        ttl = int(EMPTY_STREAM_TTL.total_seconds())
        calls: list[Call] = [
            ([keys.tasks_key(queue)], [keys.GROUP, consumer, limit, ttl]) for queue, limit in wanted.items()
        ]
        return await self._read(consumer, zip(wanted, await self._run(_TAKE, calls), strict=True))

    async def _wait(self, consumer: str, wanted: Mapping[str, int], seconds: float) -> list[Delivery]:
        """Wait for the first task of any of these queues."""
        queues = {keys.tasks_key(queue).encode(): queue for queue in wanted}
        options = ("COUNT", min(wanted.values()), "BLOCK", max(1, int(seconds * 1000)))
        everything_new = (">",) * len(queues)
        with QUEUE_ERRORS:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.response_callbacks = {}  # raw, as the replies of scripts
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
        streams = dict(reply or {})
        return await self._read(consumer, ((queues[name], streams[name]) for name in streams))

    async def _read(self, consumer: str, streams: Iterable[tuple[str, list[Any]]]) -> list[Delivery]:
        """Decode entries; one that is no task is dropped, since it would be delivered again for ever."""
        deliveries = []
        for queue, entries in streams:
            for message, fields, *claim in entries:
                task = _task(fields)
                if task:
                    deliveries.append(_delivery(queue, message, task, *claim))
                else:
                    await self._drop(consumer, queue, message.decode())
        return deliveries

    async def _drop(self, consumer: str, queue: str, message: str) -> None:
        logger.error(
            "dropped an invalid message of the task queue",
            extra={"batch_id": split_queue(queue)[0], "message_id": message},
        )
        await self._run(_ACK, [([keys.tasks_key(queue)], [keys.GROUP, consumer, message])])

    async def claim_stalled(
        self, consumer: str, queues: Sequence[str], *, idle: timedelta, limit: int
    ) -> list[Delivery]:
        """Claim tasks whose consumer has neither acked nor extended them for `idle`."""
        claimed: list[Delivery] = []
        for queue in queues:
            if len(claimed) < limit:
                arguments = [keys.GROUP, consumer, _milliseconds(idle), limit - len(claimed)]
                replies = await self._run(_CLAIM_STALLED, [([keys.tasks_key(queue)], arguments)])
                claimed += await self._read(consumer, [(queue, replies[0])])
        telemetry.count_claims(each.claimed_from for each in claimed)
        return claimed

    @override
    async def ack(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        owned = await self._remove(consumer, deliveries)
        telemetry.acked.add(owned)
        return owned

    @override
    async def nack(self, consumer: str, delivery: Delivery) -> bool:
        arguments = [keys.GROUP, consumer, delivery.id, *delivery.task]
        is_owned = bool((await self._run(_NACK, [([keys.tasks_key(delivery.queue)], arguments)]))[0])
        telemetry.nacked.add(is_owned, telemetry.RETRY)
        return is_owned

    async def dead_letter(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        """Remove tasks whose evaluation failed; returns how many this consumer still owned."""
        owned = await self._remove(consumer, deliveries)
        telemetry.nacked.add(owned, telemetry.DEAD_LETTER)
        return owned

    async def _remove(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        return sum(await self._run(_ACK, _calls_by_queue(consumer, deliveries)))

    @override
    async def extend(self, consumer: str, deliveries: Sequence[Delivery]) -> list[Delivery]:
        calls = list(_calls_by_queue(consumer, deliveries))
        replies = await self._run(_EXTEND, calls)
        owned = {
            (names[0], message.decode())
            for (names, _), reply in zip(calls, replies, strict=True)
            for message in reply
        }
        return [each for each in deliveries if (keys.tasks_key(each.queue), each.id) in owned]

    @override
    async def counts(self, queues: Sequence[str]) -> list[QueueCounts]:
        replies = await self._run(_COUNTS, [([keys.tasks_key(queue)], [keys.GROUP]) for queue in queues])
        return [QueueCounts(*reply) for reply in replies]

    @override
    async def delete(self, batch_id: str, partitions: Sequence[str] = (DEFAULT_PARTITION,)) -> None:
        streams = [keys.tasks_key(queue_name(batch_id, partition)) for partition in partitions]
        with QUEUE_ERRORS:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.unlink(*streams, keys.legacy_dead_letters_key(batch_id))
                await answers(pipe)

    async def _run(self, script: Script, calls: Iterable[Call]) -> list[Any]:
        with QUEUE_ERRORS:
            return await script.run(self._redis, list(calls))


def _delivery(queue: str, message: bytes, task: Task, count: int = 1, holder: bytes = b"") -> Delivery:
    return Delivery(queue, message.decode(), task, count, holder.decode())


def _task(fields: Sequence[bytes]) -> Task | None:
    """Decode the fields of an entry, names and values in turn; None if they are no task."""
    named = dict(zip(fields[::2], fields[1::2], strict=True))
    try:
        return Task(named[b"id"].decode(), int(named[b"attempt"]))
    except (KeyError, ValueError):
        return None


def _calls_by_queue(consumer: str, deliveries: Sequence[Delivery]) -> Iterator[Call]:
    """Group messages by queue: one call for each, on behalf of their consumer."""
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
