"""A writer that appends events out of order, by the public protocol."""

from dataclasses import dataclass

from pydantic_core import to_json
from redis.typing import EncodableT, FieldT

from eventlog.clock import utc_now
from eventlog.events import SCHEMA_VERSION
from eventlog.keys import events_key, shard_of, wake_key
from eventlog.redis_streams import connect

Fields = dict[FieldT, EncodableT]

Data = dict[str, object]

HISTORY: tuple[tuple[str, Data], ...] = (
    ("queued", {"case": {"id": "1", "input": "2 + 2"}}),
    ("provisioning", {"executor": "foreign", "nonce": "1"}),
    ("running", {"target": "foreign"}),
    ("completed", {"verdict": "passed", "score": 1, "output": "4"}),
)

BACKWARDS = 8


@dataclass(frozen=True, slots=True)
class UnorderedWriter:
    """An external batch, written with two plain Redis commands (docs/reference/protocol.md)."""

    redis_url: str
    batch_id: str
    shards: int

    async def write(self) -> int:
        """Write histories backwards, one with an event missing, one with something that is no event."""
        await self._write("with-a-gap", [0, 1, 3])
        await self._write("with-garbage", [0, 1, 2, 3], garbage=True)
        for number in range(BACKWARDS):
            await self._write(f"backwards-{number}", [3, 2, 1, 0])
        return BACKWARDS + 2

    async def _write(self, name: str, sequences: list[int], *, garbage: bool = False) -> None:
        key = f"{self.batch_id}.{name}"
        shard = shard_of(key, self.shards)
        async with connect(self.redis_url, max_connections=1) as redis:
            for sequence in sequences:
                await redis.xadd(events_key(shard, key), self._fields(key, sequence))
            if garbage:
                fields: Fields = {"attempt": "1", "sequence": "4", "type": "scored", "event": "no event"}
                await redis.xadd(events_key(shard, key), fields)
            await redis.xadd(wake_key(shard), {"id": key})

    def _fields(self, key: str, sequence: int) -> Fields:
        kind, data = HISTORY[sequence]
        event = {
            "evaluation_id": key,
            "batch_id": self.batch_id,
            "attempt": 1,
            "sequence": sequence,
            "type": kind,
            "occurred_at": utc_now().isoformat(),
            "source": "foreign",
            "schema_version": SCHEMA_VERSION,
            "data": data,
        }
        return {"attempt": "1", "sequence": str(sequence), "type": kind, "event": to_json(event).decode()}
