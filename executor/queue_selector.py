"""Which queues of each batch to fetch from next: not one that was just empty, not a closed one. Pure.

Queues are served in the order in which the batch lists them, so scoring comes before new calls. A queue
with tasks gets all turns of its batch; one of unknown state is probed for one task besides, so that the
probe costs the others no turn. An empty queue is skipped for a moment, a closed one until its lane may
grant permits. A metered queue that is empty becomes idle until a count shows tasks in it: permits acquired
only to find a queue empty would be missing elsewhere.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from executor.stride_scheduler import EMPTY_PAUSE

NEVER = float("-inf")
SHORTEST_PAUSE = 0.001


@dataclass(frozen=True, slots=True)
class QueueChoice:
    """The queues that a batch's turns go to."""

    queue: str
    probes: tuple[str, ...] = ()
    """Queues to probe with one turn each."""


class QueueSelector:
    """The last known state of every queue: with tasks, empty, idle, closed until when."""

    def __init__(self) -> None:
        self._empty_since: dict[str, float] = {}
        self._closed_until: dict[str, float] = {}
        self._with_tasks: set[str] = set()
        self._idle: set[str] = set()

    def choose(self, queues: Mapping[str, Sequence[str]], now: float) -> dict[str, QueueChoice]:
        """Choose for each batch; none for a batch whose queues are closed or, some of them, just empty."""
        self._forget_all_but({queue for each in queues.values() for queue in each})
        chosen = {batch: self._choose(each, now) for batch, each in queues.items()}
        return {batch: choice for batch, choice in chosen.items() if choice is not None}

    def _choose(self, queues: Sequence[str], now: float) -> QueueChoice | None:
        open_now = [queue for queue in queues if self._closed_until.get(queue, now) <= now]
        candidates = [queue for queue in open_now if not self._was_just_empty(queue, now)]
        if candidates:
            main = next((queue for queue in candidates if queue in self._with_tasks), candidates[-1])
            return QueueChoice(main, tuple(candidates[: candidates.index(main)]))
        if len(open_now) < len(queues):
            return None
        return QueueChoice(min(open_now, key=lambda queue: self._empty_since[queue]))

    def _was_just_empty(self, queue: str, now: float) -> bool:
        return now - self._empty_since.get(queue, NEVER) < EMPTY_PAUSE

    def learn(
        self,
        requested: Mapping[str, int],
        fetched: Mapping[str, int],
        *,
        now: float,
        retry_in: Mapping[str, float],
        metered: Collection[str] = (),
    ) -> None:
        """Remember which queues delivered less than was requested, and which are closed for how long."""
        for queue, seconds in retry_in.items():
            self._closed_until[queue] = now + seconds
        for queue, number in requested.items():
            if fetched.get(queue, 0) < number:
                self._empty_since[queue] = now
                self._with_tasks.discard(queue)
                if queue in metered:
                    self._make_idle(queue, now)
            elif number:
                self._empty_since.pop(queue, None)
                self._with_tasks.add(queue)

    def _make_idle(self, queue: str, now: float) -> None:
        self._idle.add(queue)
        self._closed_until[queue] = now + EMPTY_PAUSE

    def idle_queues(self, now: float) -> list[str]:
        """Return idle queues that were not polled for a while."""
        return [queue for queue in self._idle if self._closed_until.get(queue, now) <= now]

    def polled(self, ready: Mapping[str, int], now: float) -> None:
        """Reactivate idle queues that have tasks; the others stay idle."""
        for queue, number in ready.items():
            if number:
                self._idle.discard(queue)
                self._empty_since.pop(queue, None)
            else:
                self._make_idle(queue, now)

    def are_empty(self, queues: Sequence[str], now: float) -> bool:
        """Whether all of these queues were just empty; a closed one may well have tasks."""
        return all(queue in self._idle or self._is_empty(queue, now) for queue in queues)

    def _is_empty(self, queue: str, now: float) -> bool:
        return self._was_just_empty(queue, now) and self._closed_until.get(queue, now) <= now

    def opens_in(self, now: float) -> float:
        """Return the seconds until the first closed queue opens; at least the shortest useful pause."""
        waits = (until - now for until in self._closed_until.values() if until > now)
        return max(SHORTEST_PAUSE, min(waits, default=float("inf")))

    def _forget_all_but(self, queues: Collection[str]) -> None:
        self._with_tasks &= set(queues)
        self._idle &= set(queues)
        for memory in (self._empty_since, self._closed_until):
            for gone in memory.keys() - queues:
                del memory[gone]


def in_queues(turns: Sequence[str], choices: Mapping[str, QueueChoice]) -> Iterator[str]:
    """Turn batches' turns into turns of their queues."""
    probed: set[str] = set()
    for batch in turns:
        choice = choices[batch]
        if batch not in probed:
            probed.add(batch)
            yield from choice.probes
        yield choice.queue
