"""Which lines of each batch to ask next: not one that was just empty, not one that a lane holds back. Pure.

Lines are served in the order in which the batch has them, so what is only to be judged comes before new
work. A line that had tasks takes all turns of its batch; one of which nobody knows is asked for one task
beside, so that looking into it costs the others no turn. An empty line rests for a moment, a shut one until
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

    line: str
    beside: tuple[str, ...] = ()
    """Lines to look into, once."""


class QueueSelector:
    """Remembers which lines had tasks, which were empty, which sleep, and which are shut until when."""

    def __init__(self) -> None:
        self._empty_since: dict[str, float] = {}
        self._shut_until: dict[str, float] = {}
        self._had_enough: set[str] = set()
        self._asleep: set[str] = set()

    def choose(self, lines: Mapping[str, Sequence[str]], now: float) -> dict[str, QueueChoice]:
        """Choose for each batch; nothing for one whose lines are shut or, some of them, just empty."""
        self._forget_all_but({line for each in lines.values() for line in each})
        chosen = {batch: self._choose(each, now) for batch, each in lines.items()}
        return {batch: choice for batch, choice in chosen.items() if choice is not None}

    def _choose(self, lines: Sequence[str], now: float) -> QueueChoice | None:
        unshut = [line for line in lines if self._shut_until.get(line, now) <= now]
        awake = [line for line in unshut if not self._rests(line, now)]
        if awake:
            main = next((line for line in awake if line in self._had_enough), awake[-1])
            return QueueChoice(main, tuple(awake[: awake.index(main)]))
        if len(unshut) < len(lines):
            return None
        return QueueChoice(min(unshut, key=lambda line: self._empty_since[line]))

    def _rests(self, line: str, now: float) -> bool:
        return now - self._empty_since.get(line, LONG_AGO) < REST

    def learn(
        self,
        asked: Mapping[str, int],
        taken: Mapping[str, int],
        *,
        now: float,
        shut: Mapping[str, float],
        metered: Collection[str] = (),
    ) -> None:
        """Remember which lines had less than they were asked for, and which are shut for how long."""
        for line, seconds in shut.items():
            self._shut_until[line] = now + seconds
        for line, number in asked.items():
            if taken.get(line, 0) < number:
                self._empty_since[line] = now
                self._had_enough.discard(line)
                if line in metered:
                    self._sleep(line, now)
            elif number:
                self._empty_since.pop(line, None)
                self._had_enough.add(line)

    def _sleep(self, line: str, now: float) -> None:
        self._asleep.add(line)
        self._shut_until[line] = now + REST

    def idle_queues(self, now: float) -> list[str]:
        """Name lines that sleep and have not been looked at for a while."""
        return [line for line in self._asleep if self._shut_until.get(line, now) <= now]

    def saw(self, ready: Mapping[str, int], now: float) -> None:
        """Wake lines that were seen to have tasks; let the others sleep on."""
        for line, number in ready.items():
            if number:
                self._asleep.discard(line)
                self._empty_since.pop(line, None)
            else:
                self._sleep(line, now)

    def are_empty(self, lines: Sequence[str], now: float) -> bool:
        """Whether all of these lines were just found empty; one that is shut may well have tasks."""
        return all(line in self._asleep or self._is_empty(line, now) for line in lines)

    def _is_empty(self, line: str, now: float) -> bool:
        return self._rests(line, now) and self._shut_until.get(line, now) <= now

    def opens_in(self, now: float) -> float:
        """Say in how many seconds the first of the shut lines opens; not in less than can be waited for."""
        waits = (until - now for until in self._shut_until.values() if until > now)
        return max(SHORTEST, min(waits, default=float("inf")))

    def _forget_all_but(self, lines: Collection[str]) -> None:
        self._had_enough &= set(lines)
        self._asleep &= set(lines)
        for memory in (self._empty_since, self._shut_until):
            for gone in memory.keys() - lines:
                del memory[gone]


def in_lines(turns: Sequence[str], choices: Mapping[str, QueueChoice]) -> Iterator[str]:
    """Turn batches' turns into those of their lines."""
    seen: set[str] = set()
    for batch in turns:
        choice = choices[batch]
        if batch not in seen:
            seen.add(batch)
            yield from choice.beside
        yield choice.line
