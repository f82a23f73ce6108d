"""The queues of a batch: one, or several partitions where lanes limit some of its calls. Pure.

A batch without metered targets or evaluators has one queue, named like the batch. Otherwise each metered
target has a partition of its own, so that a target without capacity never blocks another (no head-of-line
blocking); and attempts that have their answer and need only scores wait in a partition of their own, which
is served before new work.
"""

from dataclasses import dataclass
from functools import cached_property

from domain.batch_spec import BatchSpec
from eventlog import payloads as p

_SEPARATOR = "\x1f"
"""Between a batch id and a partition: no id has control characters."""
DEFAULT_PARTITION = ""
SCORING_PARTITION = "scoring"


def queue_name(batch_id: str, partition: str = DEFAULT_PARTITION) -> str:
    """Return the name of the queue of one partition of a batch."""
    return f"{batch_id}{_SEPARATOR}{partition}" if partition else batch_id


def split_queue(queue: str) -> tuple[str, str]:
    """Return the batch id and the partition of a queue."""
    batch_id, _, partition = queue.partition(_SEPARATOR)
    return batch_id, partition


@dataclass(frozen=True)
class QueueLayout:
    """The partitions and queues of a batch."""

    batch_id: str
    spec: BatchSpec

    @cached_property
    def partitions(self) -> tuple[str, ...]:
        """The partitions, in the order in which executors serve them."""
        if not self.is_metered:
            return (DEFAULT_PARTITION,)
        metered = (_partition(number) for number, each in enumerate(self.spec.targets) if each.is_metered)
        default = () if all(each.is_metered for each in self.spec.targets) else (DEFAULT_PARTITION,)
        return (SCORING_PARTITION, *metered, *default)

    @cached_property
    def is_metered(self) -> bool:
        """Whether any target or evaluator has a lane."""
        spec = self.spec
        return any(each.is_metered for each in spec.targets) or any(e.is_metered for e in spec.evaluators)

    @property
    def queues(self) -> list[str]:
        """The queues of all partitions."""
        return [queue_name(self.batch_id, partition) for partition in self.partitions]

    def queue_for(self, opening: p.Queued) -> str:
        """Return the queue of an attempt."""
        return queue_name(self.batch_id, self._partition_for(opening))

    def _partition_for(self, opening: p.Queued) -> str:
        if not self.is_metered:
            return DEFAULT_PARTITION
        if opening.answer is not None:
            return SCORING_PARTITION
        number = opening.variant % len(self.spec.targets)
        return _partition(number) if self.spec.targets[number].is_metered else DEFAULT_PARTITION


def target_number(partition: str) -> int | None:
    """Return the number of the target whose partition it is; None for a partition of several targets."""
    return int(partition.removeprefix("target-")) if partition.startswith("target-") else None


def _partition(number: int) -> str:
    return f"target-{number}"
