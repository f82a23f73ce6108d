"""An event log that fails on demand, before or after it has executed the call."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from eventlog.codec import RawEntry, decode_body
from eventlog.events import Event, EventKey
from eventlog.keys import DEFAULT_SHARDS
from eventlog.log import Append, AppendResponse, LogUnavailable
from eventlog.memory import MemoryEventLog
from tests.builders import FIRST_ARRIVAL_MS

Outcome = Literal["unreached", "reply lost", "reply lost in a restart", "fine"]


class FaultyLog:
    """A `LogWriter` over the in-memory log that records the calls which reached it."""

    def __init__(self, *, shards: int = DEFAULT_SHARDS) -> None:
        self.clock_ms = FIRST_ARRIVAL_MS
        self.memory = MemoryEventLog(lambda: self.clock_ms, shards=shards)
        self.shards = self.memory.shards
        self.round_trips: list[list[Append]] = []
        self.outcomes: deque[Outcome] = deque()
        self.before_epoch: Callable[[str], Awaitable[None]] | None = None
        self.after_committed: Callable[[], Awaitable[None]] | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    def fail(self, *outcomes: Outcome) -> None:
        """Set the outcome of the next appends, one by one."""
        self.outcomes.extend(outcomes)

    async def epochs(self) -> list[str]:
        """Delegate to the in-memory log."""
        return await self.memory.epochs()

    async def epoch(self, evaluation_id: str) -> str:
        """Run the test's hook, then delegate to the in-memory log."""
        if self.before_epoch:
            await self.before_epoch(evaluation_id)
        return await self.memory.epoch(evaluation_id)

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        """Append, or fail, or both."""
        outcome = self.outcomes.popleft() if self.outcomes else "fine"
        if outcome == "unreached":
            raise LogUnavailable("not reached")
        self.round_trips.append(list(calls))
        replies = await self.memory.append(calls)
        await self.may_answer.wait()
        if outcome == "reply lost in a restart":
            self.memory.restart()
        if outcome.startswith("reply lost"):
            raise LogUnavailable("the reply was lost")
        return replies

    async def committed(self, evaluation_ids: Sequence[str]) -> list[EventKey | None]:
        """Delegate to the in-memory log, and run the test's hook before the next read."""
        marks = await self.memory.committed(evaluation_ids)
        after, self.after_committed = self.after_committed, None
        if after:  # once: after a change of epoch the queue reads the marks again
            await after()
        return marks

    async def events(self, evaluation_id: str) -> list[Event]:
        """Return the events in an evaluation's stream."""
        (raw,) = await self.memory.read([evaluation_id], limit=1_000)
        return [_event(entry) for entry in raw]

    async def keys(self, evaluation_id: str) -> list[EventKey]:
        """Return the keys of the events in an evaluation's stream."""
        return [event.key for event in await self.events(evaluation_id)]


def _event(entry: RawEntry) -> Event:
    _, fields = entry
    return decode_body(fields[fields.index(b"event") + 1])
