"""A network on a bad day: a `LogWriter` between the writers and the real one that jumbles what passes.

Each event of a call travels alone, over one of several connections, after a delay of its own; some
arrive twice, and a few not at all although their writer received OK. Only an attempt's first event is
spared: Redis accepts nothing of an attempt that has not been opened.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from eventlog.codec import fields_of
from eventlog.events import EventKey
from eventlog.keys import events_key, shard_of, wake_key
from eventlog.log import Append, AppendResponse, AppendResult, EncodedEvent, Mode
from eventlog.redis_streams import LOG_ERRORS, RedisEventLog

LOSABLE = frozenset({"provisioning", "running", "responded", "scored"})
"""What may get lost: an evaluation whose closing event is lost has no end to bridge to."""


DELAYS = (0.0, 0.0, 0.0, 0.01, 0.02, 0.05)
"""Seconds an event may dally: half of them do not."""


@dataclass(slots=True)
class InjectedDisorder:
    """What was done to the events so far."""

    sent: int = 0
    delayed: int = 0
    duplicated: int = 0
    lost: int = 0


class Route(NamedTuple):
    """Which way an event takes, and how long it dallies."""

    connection: int
    delay: float


class DisorderlyLog:
    """`LogWriter` over several connections, with the disorder of a seeded random generator."""

    def __init__(self, logs: Sequence[RedisEventLog], rng: Random) -> None:
        self.injected = InjectedDisorder()
        self.shards = logs[0].shards
        self._logs = logs
        self._rng = rng

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        """Append events over several connections at once, each after its own delay, some twice or never."""
        flights: dict[Route, list[tuple[int, Append]]] = defaultdict(list)
        answers: list[dict[int, AppendResult]] = [{} for _ in calls]
        epochs = [call.epoch for call in calls]
        openings: list[tuple[int, Append]] = []
        for number, call in enumerate(calls):
            self.injected.sent += len(call.records)
            for single in _apart(call):
                sequence = single.records[0].event.sequence
                if call.mode is not Mode.NORMAL or sequence == 0:
                    openings.append((number, single))
                elif self._is_lost(single):
                    answers[number][sequence] = AppendResult.OK
                else:
                    flights[self._route()].append((number, single))

        async def fly(route: Route, flight: list[tuple[int, Append]]) -> None:
            await asyncio.sleep(route.delay)
            replies = await self._logs[route.connection].append([single for _, single in flight])
            for (number, single), reply in zip(flight, replies, strict=True):
                epochs[number] = reply.epoch
                for record, answer in zip(single.records, reply.results, strict=True):
                    answers[number][record.event.sequence] = answer
                    await self._perhaps_again(record, answer)

        if openings:
            await fly(Route(0, 0.0), openings)
        await asyncio.gather(*(fly(route, flight) for route, flight in flights.items()))
        return [
            AppendResponse(tuple(answers[n][r.event.sequence] for r in call.records), epochs[n])
            for n, call in enumerate(calls)
        ]

    def _is_lost(self, single: Append) -> bool:
        lost = single.records[0].event.type in LOSABLE and self._rng.random() < 0.002
        self.injected.lost += lost
        return lost

    def _route(self) -> Route:
        delay = self._rng.choice(DELAYS)
        self.injected.delayed += delay > 0
        return Route(self._rng.randrange(len(self._logs)), delay)

    async def _perhaps_again(self, record: EncodedEvent, answer: AppendResult) -> None:
        if answer is AppendResult.OK and self._rng.random() < 0.03:
            self.injected.duplicated += 1
            await write_plainly(self._any_log(), record)

    def _any_log(self) -> RedisEventLog:
        return self._rng.choice(self._logs)

    async def epochs(self) -> list[str]:
        """Ask the real log."""
        return await self._any_log().epochs()

    async def epoch(self, evaluation_id: str) -> str:
        """Ask the real log."""
        return await self._any_log().epoch(evaluation_id)

    async def committed(self, evaluation_ids: Sequence[str]) -> list[EventKey | None]:
        """Ask the real log."""
        return await self._any_log().committed(evaluation_ids)


def _apart(call: Append) -> list[Append]:
    """Let each event of a call travel alone; a tail stays together, as it must."""
    if call.mode is not Mode.NORMAL:
        return [call]
    return [Append(call.evaluation_id, [record], call.epoch) for record in call.records]


async def write_plainly(log: RedisEventLog, record: EncodedEvent) -> None:
    """Write as a client without our script does: two XADDs, and no check for duplicates."""
    event = record.event
    shard = shard_of(event.evaluation_id, log.shards)
    fields = fields_of(event, record.body)
    with LOG_ERRORS:
        await log.redis.xadd(events_key(shard, event.evaluation_id), fields)  # type: ignore[arg-type]  # values are str, int or bytes
        await log.redis.xadd(wake_key(shard), {"id": event.evaluation_id})
