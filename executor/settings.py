"""What an executor is told."""

from dataclasses import dataclass
from datetime import timedelta

from domain.eligibility import Eligibility
from eventlog.keys import DEFAULT_SHARDS
from taskqueue.executor_registry import HEARTBEAT_INTERVAL

MAX_NAME = 150
EVERY_BATCH_OF_THE_FLEET = Eligibility()


@dataclass(frozen=True, slots=True)
class Timings:
    """How often an executor looks, and how long it waits; the defaults suit production."""

    refresh: timedelta = timedelta(seconds=1)
    """Between two looks at the batch registry."""
    idle_refresh: timedelta = timedelta(milliseconds=100)
    """The same while there is no batch: all executors should begin on the next one together."""
    block: timedelta = timedelta(seconds=1)
    """How long one request for tasks waits for the first; also how late a stop may be noticed."""
    poll: timedelta = timedelta(milliseconds=50)
    """The same where not all batches can be asked at once, and the pause where no work may be taken."""
    ack_linger: timedelta = timedelta(milliseconds=5)
    """How long a finished task waits for company before the queue is told."""
    heartbeat: timedelta = HEARTBEAT_INTERVAL
    take_over_every: timedelta = timedelta(seconds=10)
    take_over_idle: timedelta = timedelta(seconds=30)
    """How long a task must have been left alone before it is taken from its consumer."""
    shutdown_grace: timedelta = timedelta(seconds=10)
    """After the drain: how long interrupted attempts, acknowledgements and the farewell may take."""


def is_name(name: str) -> bool:
    """Whether an executor can be called so: its name stands in every claim."""
    return 0 < len(name) <= MAX_NAME and name.isprintable()


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """Who an executor is, and how much it takes on."""

    name: str
    slots: int = 10
    """Evaluations in hand at a time."""
    eligibility: Eligibility = EVERY_BATCH_OF_THE_FLEET
    """Which batches it may serve."""
    once: bool = False
    """End when there is nothing left to do."""
    drain: timedelta = timedelta(seconds=60)
    """How long work in hand may go on once the executor was told to stop."""
    timings: Timings = Timings()
    keeps_lanes_alone: bool = False
    """Whether it keeps to its share of each rate limit by itself, instead of asking the fleet's lanes."""

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ValueError(
                f"{self.name!r} names no executor: 1 to {MAX_NAME} printable characters, please"
            )


@dataclass(frozen=True, slots=True)
class Connection:
    """Where the log, the tasks and the batch registry are."""

    redis_url: str
    shards: int = DEFAULT_SHARDS
    max_buffer: int = 10 * 1024 * 1024
    """Bytes of events an executor holds before it takes on no more work."""
