"""Settings of an executor."""

from dataclasses import dataclass
from datetime import timedelta

from domain.eligibility import Eligibility
from eventlog.keys import DEFAULT_SHARDS
from taskqueue.executor_registry import HEARTBEAT_INTERVAL

MAX_NAME = 150
"""Characters of an executor's name."""
EVERY_BATCH_OF_THE_FLEET = Eligibility()


@dataclass(frozen=True, slots=True)
class Timings:
    """Intervals and time limits; the defaults suit production."""

    refresh: timedelta = timedelta(seconds=1)
    """Between two reads of the batch registry."""
    idle_refresh: timedelta = timedelta(milliseconds=100)
    """The same while there is no batch: all executors should start on the next one together."""
    block: timedelta = timedelta(seconds=1)
    """How long one fetch blocks for the first task; also the delay before a stop is noticed."""
    poll: timedelta = timedelta(milliseconds=50)
    """The same where one fetch can't cover all batches, and the pause where no task may be fetched."""
    ack_linger: timedelta = timedelta(milliseconds=5)
    """How long an acknowledgement waits to be sent together with others."""
    heartbeat: timedelta = HEARTBEAT_INTERVAL
    take_over_every: timedelta = timedelta(seconds=10)
    stalled_after: timedelta = timedelta(seconds=30)
    """How long a task must not have been extended before it is taken over from its consumer."""
    shutdown_grace: timedelta = timedelta(seconds=10)
    """After the drain: how long interrupted attempts, acknowledgements and deregistration may take."""


def is_name(name: str) -> bool:
    """Whether a name is valid for an executor: it is part of every claim."""
    return 0 < len(name) <= MAX_NAME and name.isprintable()


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """Identity and capacity of an executor."""

    name: str
    slots: int
    """Concurrent evaluations."""
    eligibility: Eligibility = EVERY_BATCH_OF_THE_FLEET
    """Which batches it may serve."""
    once: bool = False
    """Stop when no task is left."""
    drain: timedelta = timedelta(seconds=60)
    """How long active attempts may go on after a stop was requested."""
    timings: Timings = Timings()
    keeps_lanes_alone: bool = False
    """Whether it enforces its share of each rate limit locally, instead of acquiring from shared lanes."""

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ValueError(
                f"invalid executor name {self.name!r}: it must have 1 to {MAX_NAME} printable characters"
            )


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Where the event log, the task queue and the registries are."""

    redis_url: str
    shards: int = DEFAULT_SHARDS
