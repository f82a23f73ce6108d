"""The little of a coordinator that the rows need: opens attempts, and the next where an owner is lost."""

from collections.abc import Iterable, Sequence

from redis.asyncio import Redis

from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.codec import Entry, encode, make_event, read_entry
from eventlog.lifecycle import CLOSING_TYPES
from eventlog.log import Append, AppendResult, EncodedEvent
from tests.chaos.run import Run
from tests.chaos.witness import WitnessedLog


class Coordinator:
    """Opens attempts by appending their sequence 0."""

    def __init__(self, run: Run, log: WitnessedLog) -> None:
        self._run = run
        self._log = log

    async def open(self, evaluation_ids: Iterable[str], attempt: int, reason: p.OpeningReason) -> None:
        """Open an attempt of each; every one must be accepted."""
        for key in evaluation_ids:
            event = make_event(
                p.Queued(case=p.Case(id=key, input="2 + 2"), reason=reason),
                evaluation_id=key,
                batch_id=self._run.batch_id,
                attempt=attempt,
                sequence=0,
                occurred_at=utc_now(),
                source="coordinator",
            )
            call = Append(key, [EncodedEvent(event, encode(event))], await self._log.epoch(key))
            [reply] = await self._log.append([call])
            assert reply.results == (AppendResult.OK,), reply

    async def take_away(self, evaluation_ids: Sequence[str], attempt: int) -> list[str]:
        """Open the next attempt of all whose owner has not closed this one, and return which they are."""
        await self._let_the_last_words_arrive()
        streams = await self._log.read(evaluation_ids, limit=100)
        unfinished = []
        for key, raw in zip(evaluation_ids, streams, strict=True):
            entries = [
                read for read in (read_entry(key, entry) for entry in raw) if isinstance(read, Entry)
            ]
            if not any(entry.event.type in CLOSING_TYPES for entry in entries):
                unfinished.append(key)
        await self.open(unfinished, attempt + 1, p.OpeningReason.LOST)
        return unfinished

    async def _let_the_last_words_arrive(self) -> None:
        """Wait until Redis has executed what was sent: two rounds of its loop."""
        async with Redis.from_url(self._run.world.servers.redis_url) as redis:
            for _ in range(3):
                await redis.ping()
