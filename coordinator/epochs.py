"""Which epoch each shard of the log is in, and for how long it is known to have held."""

from collections.abc import Callable
from datetime import timedelta

from eventlog.keys import shard_of
from eventlog.log import LogWriter


class Epochs:
    """What one coordinator has seen of the log's epochs."""

    def __init__(self, log: LogWriter, *, grace: timedelta, clock: Callable[[], float]) -> None:
        self._log = log
        self._grace = grace.total_seconds()
        self._clock = clock
        self._epochs: list[str] = []
        self._since: list[float] = []

    async def look(self) -> list[str]:
        """Ask for the epochs of now."""
        epochs = await self._log.epochs()
        now = self._clock()
        if len(self._epochs) != len(epochs):
            self._epochs, self._since = epochs, [now] * len(epochs)
        for shard, epoch in enumerate(epochs):
            if self._epochs[shard] != epoch:
                self._epochs[shard], self._since[shard] = epoch, now
        return list(self._epochs)

    def of(self, evaluation_id: str) -> str:
        """Return the epoch of the shard that holds an evaluation, as last seen."""
        return self._epochs[shard_of(evaluation_id, self._log.shards)]

    def is_settled(self, evaluation_id: str) -> bool:
        """Whether owners have had the time to put their attempts back."""
        shard = shard_of(evaluation_id, self._log.shards)
        return self._clock() - self._since[shard] >= self._grace

    @property
    def current(self) -> list[str]:
        """The epochs as last seen."""
        return list(self._epochs)

    @property
    def all_settled(self) -> bool:
        """Whether that is so for every shard."""
        return all(self._clock() - since >= self._grace for since in self._since)
