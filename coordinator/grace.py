"""The grace period after an epoch change: until every owner has re-appended its attempts. Pure.

Redis may lose events that it had acknowledged, claims among them. Their owners re-append them; an attempt
opened before that would be paid for a second time. So an evaluation published in an older epoch waits, as
for the expiry of a lease (model: `GRACE_AFTER_LOSS`), for a fixed time at most.

The wait ends earlier if Redis restarted with its data, which the epoch shows: its random half is lost with
the data, its run id changes with the process. An append-only file is replayed as a prefix of
what was written, so a suffix is lost: claims, tails and heartbeats of the last moments. Then

- a live owner registered before its first claim; it is in the roster that this coordinator read in the old
  epoch, or in the one that it reads now. It confirms the new epoch with a heartbeat once all events it
  buffers for the shard are acknowledged there, and no claim has an unknown result. Streams read after every
  owner has confirmed hold every claim of a live owner;
- a dead owner appends nothing, however long the wait: the next attempts open as usual;
- an owner of the roster that does not return may be partitioned: the whole grace period passes;
- a coordinator that did not read the old epoch's roster can't know which executors to wait for: the same.

One case remains: an executor registers and claims, the same restart loses both before a coordinator reads a
roster (every second), and the executor confirms after all others. It is then falsely suspected, as is any
live owner without a heartbeat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ROSTER_EVERY = 1.0
"""Seconds between two reads of the roster outside a grace period."""


@dataclass(slots=True)
class _Shard:
    epoch: str
    since: float
    awaited: frozenset[str] | None = None
    """Executors that must confirm the epoch; None: only time ends this grace period."""
    is_confirmed: bool = False


class Grace:
    """Decides for each shard whether owners may still be re-appending their attempts."""

    def __init__(self, length: float) -> None:
        self._length = length
        self._shards: list[_Shard] = []
        self._roster: dict[str, float] = {}
        """When this coordinator last found each executor registered."""
        self._read_at: float | None = None
        self._observed_at: float | None = None

    def begin(self, now: float) -> None:
        """Begin an observation, which may fail; after a long interval the roster is unknown."""
        if self._observed_at is not None and now - self._observed_at >= self._length:
            self._roster, self._read_at = {}, None
        self._observed_at = now

    def observe_epochs(self, epochs: Sequence[str], now: float) -> None:
        """Start a grace period in each shard whose epoch has changed; at first, in every shard."""
        if len(self._shards) != len(epochs):
            self._shards = [_Shard(epoch, now) for epoch in epochs]
        for number, epoch in enumerate(epochs):
            before = self._shards[number]
            if before.epoch != epoch:
                self._shards[number] = _Shard(epoch, now, self._awaited(before, epoch, now))

    def _awaited(self, before: _Shard, epoch: str, now: float) -> frozenset[str] | None:
        if self._read_at is None or _data_of(before.epoch) != _data_of(epoch):
            return None
        if self._is_over(before, now):
            return frozenset(self._roster)
        return None if before.awaited is None else before.awaited | self._roster.keys()

    def needs_roster(self, now: float) -> bool:
        """Whether the roster of executors and their confirmed epochs is due to be read."""
        if self._read_at is None or now - self._read_at >= ROSTER_EVERY:
            return True
        return any(shard.awaited is not None and not self._is_over(shard, now) for shard in self._shards)

    def observe_roster(self, confirmed: Mapping[str, Sequence[str]], now: float) -> None:
        """Observe the registered executors, with the epochs that each has confirmed."""
        self._read_at = now
        self._roster |= dict.fromkeys(confirmed, now)
        # A deregistered executor stays in the roster for a while: it may still append its last events.
        self._roster = {name: at for name, at in self._roster.items() if now - at < self._length}
        for number, shard in enumerate(self._shards):
            if shard.awaited is not None and not shard.is_confirmed:
                names = shard.awaited | confirmed.keys()
                shard.is_confirmed = bool(names) and all(
                    shard.epoch in confirmed.get(name, ())[number : number + 1] for name in names
                )

    def is_over(self, shard: int, now: float) -> bool:
        """Whether no owner can still be re-appending its attempts in this shard."""
        return self._is_over(self._shards[shard], now)

    def all_over(self, now: float) -> bool:
        """Whether the grace period of every shard is over."""
        return all(self._is_over(shard, now) for shard in self._shards)

    def _is_over(self, shard: _Shard, now: float) -> bool:
        return shard.is_confirmed or now - shard.since >= self._length

    @property
    def epochs(self) -> list[str]:
        """The epochs as last observed."""
        return [shard.epoch for shard in self._shards]


def _data_of(epoch: str) -> str:
    """Return the half of an epoch that is lost with the data."""
    return epoch.partition("-")[0]
