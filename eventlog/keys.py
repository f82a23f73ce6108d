"""Names of the keys in Redis; the braces make all keys of a shard share one cluster slot."""

from collections.abc import Iterable
from zlib import crc32

DEFAULT_SHARDS = 4
GROUP = "storage"
"""The consumer group through which all storage workers read all shards."""


def shard_of(evaluation_id: str, shards: int) -> int:
    """Place an evaluation: the same on every machine, in every language."""
    return crc32(evaluation_id.encode()) % shards


def events_key(shard: int, evaluation_id: str) -> str:
    """Name the evaluation's own stream."""
    return f"eval:{{{shard:02}}}:events:{evaluation_id}"


def append_state_key(shard: int, evaluation_id: str) -> str:
    """Name the append state: the hash beside the stream that makes appends independent of its length."""
    return f"eval:{{{shard:02}}}:fence:{evaluation_id}"


def wake_key(shard: int) -> str:
    """Name the shard's wake-up stream."""
    return f"eval:{{{shard:02}}}:wake"


def epoch_key(shard: int) -> str:
    """Name the random key that is made once and lost with everything else."""
    return f"eval:{{{shard:02}}}:epoch"


def append_keys(shard: int, evaluation_ids: Iterable[str]) -> list[str]:
    """Name the keys of a call of `append.lua` in its order: the shard's follow the first evaluation's."""
    names: list[str] = []
    for evaluation_id in evaluation_ids:
        names += (events_key(shard, evaluation_id), append_state_key(shard, evaluation_id))
        if len(names) == 2:
            names += (wake_key(shard), epoch_key(shard))
    return names
