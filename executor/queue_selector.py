"""Which queues of each batch to consume next: none that was just empty, none that a lane holds back. Pure.

Queues are served in the order in which the batch has them, so what is only to be judged comes before new
work. A queue that had tasks takes all turns of its batch; one of which nobody knows is asked for one task
beside, so that probing it costs the others no turn. An empty queue rests for a moment, a shut one until
its lane may have something. One that takes permits sleeps when it is empty, until it is seen to have tasks:
who asks a lane only to find nothing keeps others from what it grants.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from executor.stride_scheduler import REST

LONG_AGO = float("-inf")
SHORTEST = 0.001


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """Where a batch's turns go."""

    queue: str
    beside: tuple[str, ...] = ()
    """Queues to look into, once."""


class QueueSelector:
    """Remembers which queues had tasks, which were empty, which sleep, and which are shut until when."""

    def __init__(self) -> None:
        self._empty_since: dict[str, float] = {}
        self._shut_until: dict[str, float] = {}
        self._had_enough: set[str] = set()
        self._asleep: set[str] = set()

    def choose(self, queues: Mapping[str, Sequence[str]], now: float) -> dict[str, QueueChoice]:
        """Choose for each batch; nothing for one whose queues are shut or, some of them, just empty."""
        self._forget_all_but({queue for each in queues.values() for queue in each})
        chosen = {batch: self._choose(each, now) for batch, each in queues.items()}
        return {batch: choice for batch, choice in chosen.items() if choice is not None}

    def _choose(self, queues: Sequence[str], now: float) -> QueueChoice | None:
        unshut = [queue for queue in queues if self._shut_until.get(queue, now) <= now]
        awake = [queue for queue in unshut if not self._rests(queue, now)]
        if awake:
            main = next((queue for queue in awake if queue in self._had_enough), awake[-1])
            return QueueChoice(main, tuple(awake[: awake.index(main)]))
        if len(unshut) < len(queues):
            return None
        return QueueChoice(min(unshut, key=lambda queue: self._empty_since[queue]))

    def _rests(self, queue: str, now: float) -> bool:
        return now - self._empty_since.get(queue, LONG_AGO) < REST

    def learn(
        self,
        asked: Mapping[str, int],
        taken: Mapping[str, int],
        *,
        now: float,
        shut: Mapping[str, float],
        metered: Collection[str] = (),
    ) -> None:
        """Remember which queues had less than they were asked for, and which are shut for how long."""
        for queue, seconds in shut.items():
            self._shut_until[queue] = now + seconds
        for queue, number in asked.items():
            if taken.get(queue, 0) < number:
                self._empty_since[queue] = now
                self._had_enough.discard(queue)
                if queue in metered:
                    self._sleep(queue, now)
            elif number:
                self._empty_since.pop(queue, None)
                self._had_enough.add(queue)

    def _sleep(self, queue: str, now: float) -> None:
        self._asleep.add(queue)
        self._shut_until[queue] = now + REST

    def idle_queues(self, now: float) -> list[str]:
        """Name queues that sleep and have not been looked at for a while."""
        return [queue for queue in self._asleep if self._shut_until.get(queue, now) <= now]

    def saw(self, ready: Mapping[str, int], now: float) -> None:
        """Wake queues that were seen to have tasks; let the others sleep on."""
        for queue, number in ready.items():
            if number:
                self._asleep.discard(queue)
                self._empty_since.pop(queue, None)
            else:
                self._sleep(queue, now)

    def are_empty(self, queues: Sequence[str], now: float) -> bool:
        """Whether all of these queues were just found empty; one that is shut may well have tasks."""
        return all(queue in self._asleep or self._is_empty(queue, now) for queue in queues)

    def _is_empty(self, queue: str, now: float) -> bool:
        return self._rests(queue, now) and self._shut_until.get(queue, now) <= now

    def opens_in(self, now: float) -> float:
        """Return in how many seconds the first of the shut queues opens; at least the shortest wait."""
        waits = (until - now for until in self._shut_until.values() if until > now)
        return max(SHORTEST, min(waits, default=float("inf")))

    def _forget_all_but(self, queues: Collection[str]) -> None:
        self._had_enough &= set(queues)
        self._asleep &= set(queues)
        for memory in (self._empty_since, self._shut_until):
            for gone in memory.keys() - queues:
                del memory[gone]


def in_queues(turns: Sequence[str], choices: Mapping[str, QueueChoice]) -> Iterator[str]:
    """Turn batches' turns into those of their queues."""
    seen: set[str] = set()
    for batch in turns:
        choice = choices[batch]
        if batch not in seen:
            seen.add(batch)
            yield from choice.beside
        yield choice.queue
