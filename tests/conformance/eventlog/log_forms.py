"""The implementations of the event log, with what a test can see and do beyond the contract."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from redis.exceptions import ResponseError

from eventlog import keys
from eventlog.codec import RawEntry
from eventlog.log import EXPIRY_SECONDS, EventLog
from eventlog.memory import MemoryEventLog
from eventlog.redis_streams import RedisEventLog
from tests.builders import FIRST_ARRIVAL_MS


class Form(Protocol):
    """One implementation under test."""

    @property
    def log(self) -> EventLog:
        """The log itself."""
        ...

    async def lose_everything(self) -> None:
        """Lose all data, as a flushed Redis does."""
        ...

    async def wake_ups(self, evaluation_id: str) -> list[str]:
        """Return the wake-ups of the evaluation's shard, oldest first."""
        ...

    async def take_wake_ups(self, evaluation_id: str) -> None:
        """Read the shard's wake-ups as a consumer."""
        ...

    async def is_expiring(self, evaluation_id: str) -> bool:
        """Return whether the evaluation's stream expires soon."""
        ...

    async def let_expire(self, evaluation_id: str) -> None:
        """Advance to the moment when an expiring stream is deleted."""
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


@dataclass
class Clock:
    """A clock that moves only when the test advances it."""

    ms: int = FIRST_ARRIVAL_MS

    def __call__(self) -> int:
        return self.ms


@dataclass
class MemoryForm:
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.log = MemoryEventLog(self.clock)

    async def lose_everything(self) -> None:
        self.log.lose_everything()

    async def wake_ups(self, evaluation_id: str) -> list[str]:
        return self.log.wake_ups[keys.shard_of(evaluation_id, self.log.shards)]

    async def take_wake_ups(self, evaluation_id: str) -> None:
        self.log.wake_ups[keys.shard_of(evaluation_id, self.log.shards)].clear()

    async def is_expiring(self, evaluation_id: str) -> bool:
        return self.log._alive(evaluation_id).expires_ms < float("inf")

    async def let_expire(self, evaluation_id: str) -> None:
        self.clock.ms += EXPIRY_SECONDS * 1000

    async def aclose(self) -> None: ...


class RedisForm:
    def __init__(self, url: str) -> None:
        self.log = RedisEventLog.from_url(url)
        self.redis = self.log.redis

    async def lose_everything(self) -> None:
        await self.redis.flushall()

    async def wake_ups(self, evaluation_id: str) -> list[str]:
        shard = keys.shard_of(evaluation_id, self.log.shards)
        entries: Any = await self.redis.xrange(keys.wake_key(shard))
        return [fields[b"id"].decode() for _, fields in entries]

    async def take_wake_ups(self, evaluation_id: str) -> None:
        stream = keys.wake_key(keys.shard_of(evaluation_id, self.log.shards))
        with suppress(ResponseError):
            await self.redis.xgroup_create(stream, keys.GROUP, id="0", mkstream=True)
        await self.redis.xreadgroup(keys.GROUP, "reader", {stream: ">"})
        await self.redis.xtrim(stream, maxlen=0)

    async def is_expiring(self, evaluation_id: str) -> bool:
        """Stream and fence must expire together."""
        stream, fence = self.keys_of(evaluation_id)
        lives = [await self.redis.pttl(name) for name in (stream, fence)]
        assert (lives[0] > 0) == (lives[1] > 0), f"stream and fence live {lives} ms"
        return lives[0] > 0

    async def let_expire(self, evaluation_id: str) -> None:
        if await self.is_expiring(evaluation_id):
            await self.redis.delete(*self.keys_of(evaluation_id))

    async def plain_xadd(self, evaluation_id: str, entry: RawEntry) -> None:
        """Append an event as a client does that uses no script."""
        shard = keys.shard_of(evaluation_id, self.log.shards)
        fields: Any = fields_of(entry)
        await self.redis.xadd(keys.events_key(shard, evaluation_id), fields)
        await self.redis.xadd(keys.wake_key(shard), {"id": evaluation_id})

    def keys_of(self, evaluation_id: str) -> tuple[str, str]:
        shard = keys.shard_of(evaluation_id, self.log.shards)
        return keys.events_key(shard, evaluation_id), keys.append_state_key(shard, evaluation_id)

    async def aclose(self) -> None:
        await self.log.aclose()


def fields_of(entry: RawEntry) -> dict[bytes, bytes]:
    """Return an entry's fields by name."""
    _, fields = entry
    return dict(zip(fields[::2], fields[1::2], strict=True))
