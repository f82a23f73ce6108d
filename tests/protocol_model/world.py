"""What there is: parts that never change, each holding only what it has, and the world they make up."""

from enum import Enum
from typing import NamedTuple

from eventlog.lifecycle import ENDED, Phase
from tests.protocol_model.faults import Budget


class Event(NamedTuple):
    """An event without its envelope."""

    attempt: int
    sequence: int
    type: str
    by: str = "coordinator"
    """Who wrote it; of a claim, with the nonce of the delivery."""
    answer: bool = False
    """Whether an opening carries an answer."""
    because: str = ""
    """Of an opening: the fault that led to it, which no actor can know."""
    epoch: int = 0
    """Of an opening: the epoch it was opened in; in a stream, as the fence has it."""

    @property
    def key(self) -> tuple[int, int]:
        """Its name for ever."""
        return self[:2]

    @property
    def body(self) -> tuple[object, ...]:
        """What a second event of the same key is compared by."""
        return self[2:6]

    @property
    def brings_answer(self) -> bool:
        """Whether a reader need not read the model again."""
        return self.answer or self.type in {"responded", "completed"}

    def __str__(self) -> str:
        notes = f" by {self.by}" + " with the answer" * self.answer
        return f"({self.attempt}, {self.sequence}) {self.type}{notes}"


class Postgres(NamedTuple):
    """The evaluation's row, what people asked of it, and the log for good."""

    attempt: int
    sequence: int
    phase: Phase
    published: bool
    epoch: int
    wish: str
    log: frozenset[Event]

    @property
    def ended(self) -> bool:
        """Whether nothing but an operator's retry can follow."""
        return self.phase in ENDED


class Stream(NamedTuple):
    """The evaluation's stream in Redis; its fence follows from the entries."""

    entries: tuple[Event, ...] = ()
    expiring: bool = False

    @property
    def newest(self) -> int:
        """The highest attempt in it."""
        return max((event.attempt for event in self.entries), default=0)

    def attempt(self, number: int) -> dict[int, Event]:
        """One attempt's events by sequence; the first entry of a key is the event."""
        first: dict[int, Event] = {}
        for event in self.entries:
            if event.attempt == number:
                first.setdefault(event.sequence, event)
        return first


Tasks = tuple[int, ...]
"""The queue: attempts of the one evaluation that wait to be taken, sorted."""


class Ledger(NamedTuple):
    """What really happened, which no actor can look up."""

    owned: frozenset[int] = frozenset()
    paid: frozenset[int] = frozenset()
    """Attempts in which the model was asked, unless their owner died."""


class SlotState(Enum):
    """State of an executor's slot."""

    __hash__ = object.__hash__

    IDLE = "idle"
    HOLDING = "holding a task"
    RUNNING = "running"
    SCORING = "scoring"
    CLOSING = "closing"


class Executor(NamedTuple):
    """One slot: its task, what it has yet to send, and what it keeps in case Redis forgets."""

    slot: SlotState = SlotState.IDLE
    attempt: int = 0
    knows_answer: bool = False
    outbox: tuple[Event, ...] = ()
    tail: tuple[Event, ...] = ()
    epoch: int = 0
    instance: int = 0
    delivery: int = 0
    """The nonce of the claim at hand; it goes up once Redis may have seen it."""
    asked: bool = False
    """Whether a claim was sent that was not answered."""


class Presence(NamedTuple):
    """What the others can know of an executor."""

    process: str
    epoch: int = 0
    keeps_tail: bool = False
    holding: int = 0
    """The attempt whose task it has taken and not claimed."""
    working_on: int = 0
    """The attempt it owns, where scenarios have a time-out to measure by."""


class Applying(NamedTuple):
    """A storage worker has read and not committed: from where to where, and the events between."""

    before: tuple[int, int]
    after: tuple[int, int, Phase]
    inserts: tuple[Event, ...]
    over_a_gap: bool


class Expiring(NamedTuple):
    """A storage worker has seen the end and will let the stream expire."""

    attempt: int


Worker = Applying | Expiring | None


class Opening(NamedTuple):
    """A coordinator has decided to open the next attempt."""

    following: int
    type: str
    by_operator: bool
    answer: bool
    because: str
    epoch: int
    phase_as_read: Phase


class Publishing(NamedTuple):
    """A coordinator is making an opened attempt known; `step` is what it does next."""

    step: str
    attempt: int
    epoch: int


Coordinator = Opening | Publishing | None


class World(NamedTuple):
    """Everything, part by part."""

    postgres: Postgres
    stream: Stream
    tasks: Tasks
    epoch: int
    ledger: Ledger
    budget: Budget
    executor_0: Executor
    presence_0: Presence
    executor_1: Executor
    presence_1: Presence
    worker_0: Worker
    worker_1: Worker
    coordinator_0: Coordinator
    coordinator_1: Coordinator
