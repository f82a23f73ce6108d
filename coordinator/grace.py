"""The grace after an epoch change: until every owner has appended its attempts again. Pure.

Redis may lose events that it had acknowledged, claims among them. Their owners append them again; an
attempt opened before that would be paid for a second time. So what was published in an older epoch waits
(model: `GRACE_AFTER_LOSS`), for a fixed time at most.

The wait ends earlier if Redis was only started again with its data, which its epoch tells: the random half
is lost with the data, the run id changes with the process. An append-only file is replayed as a prefix of
what was written, so a suffix is lost: claims, tails and heartbeats of the last moments. Then

- an owner that lives was registered before it first claimed; it is in the roster that this coordinator
  has seen in the old epoch, or in the one that it reads now. It confirms the new epoch with a heartbeat
  once all that it keeps in the shard is acknowledged there, and no claim of unknown fate is left. Streams
  that are read after every one of them has confirmed hold every claim of a living owner;
- an owner that died can append nothing, however long the wait: its attempts are opened as at any time;
- an owner of the roster that does not return may be cut off: the whole grace passes;
- a coordinator that did not see the old epoch's roster does not know which executors to wait for: the same.

What remains: an executor that registered, claimed and lost both to the same restart before any roster was
read (one is read every second), and confirms later than all others. It belongs to the evaluations whose
owner is falsely suspected in flight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

ROSTER_EVERY = 1.0
"""Seconds between two reads of the roster while no grace is under way."""


@dataclass(slots=True)
class _Shard:
    epoch: str
    since: float
    awaited: frozenset[str] | None = None
    """Executors that must confirm the epoch; None: only time ends this grace."""
    is_confirmed: bool = False


class Grace:
    """Decides for each shard whether owners may still be appending their attempts again."""

    def __init__(self, length: float) -> None:
        self._length = length
        self._shards: list[_Shard] = []
        self._roster: dict[str, float] = {}
        """When each executor was last registered, as far as this coordinator has seen."""
        self._read_at: float | None = None
        self._observed_at: float | None = None

    def begin(self, now: float) -> None:
        """Begin an observation, which may fail; after a long pause the roster is no longer known."""
        if self._observed_at is not None and now - self._observed_at >= self._length:
            self._roster, self._read_at = {}, None
        self._observed_at = now

    def observe_epochs(self, epochs: Sequence[str], now: float) -> None:
        """Start a grace in each shard whose epoch has changed; at first, in all of them."""
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
        """Whether it is time to read which executors there are, and what they have confirmed."""
        if self._read_at is None or now - self._read_at >= ROSTER_EVERY:
            return True
        return any(shard.awaited is not None and not self._is_over(shard, now) for shard in self._shards)

    def observe_roster(self, confirmed: Mapping[str, Sequence[str]], now: float) -> None:
        """Take in the executors that are registered, with the epochs that each has confirmed."""
        self._read_at = now
        self._roster |= dict.fromkeys(confirmed, now)
        # One that has left is remembered for a while: it may still be sending its last events.
        self._roster = {name: at for name, at in self._roster.items() if now - at < self._length}
        for number, shard in enumerate(self._shards):
            if shard.awaited is not None and not shard.is_confirmed:
                names = shard.awaited | confirmed.keys()
                shard.is_confirmed = bool(names) and all(
                    shard.epoch in confirmed.get(name, ())[number : number + 1] for name in names
                )

    def is_over(self, shard: int, now: float) -> bool:
        """Whether no owner can still be appending its attempts in this shard again."""
        return self._is_over(self._shards[shard], now)

    def all_over(self, now: float) -> bool:
        """Whether that is so for every shard."""
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
