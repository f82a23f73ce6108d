"""What the coordinator needs of a database, kept by Postgres and by the memory form alike.

Postgres is the commit point: a batch is accepted, an attempt opened, an evaluation ended when the ledger
says so, and only then is anybody told. Every step may be repeated; whoever comes second changes nothing.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple, Protocol

from domain.ids import FLEET
from eventlog.events import Event, EventKey
from projections.folds.amounts import ZERO
from projections.folds.change import EvaluationRow
from projections.folds.progress import Progress

LONGEST_RETRY_DELAY = timedelta(days=1)
"""How long after its end was stored an attempt can ask to be tried again."""


class Budget(NamedTuple):
    """What a batch may cost, and what it has cost: all that was paid, whatever came of it."""

    max_cost_usd: Decimal | None = None
    max_tokens: int | None = None
    spent_usd: Decimal = ZERO
    spent_tokens: int = 0
    next_usd: Decimal = ZERO
    """What the next call may cost, where the budget had no room for it."""
    next_tokens: int = 0
    unrecorded_usd: Decimal = ZERO
    """The part of the spend that no event records: calls whose cost never became known."""
    unrecorded_tokens: int = 0


@dataclass(frozen=True, slots=True)
class BatchHead:
    """A batch as it is accepted."""

    batch_id: str
    spec: bytes
    name: str = ""
    project: str = "default"
    dataset: str = ""
    tags: tuple[str, ...] = ()
    priority: int = 1
    max_duration: timedelta | None = None
    submitted_by: str = "user"
    max_cost_usd: Decimal | None = None
    max_tokens: int | None = None
    run_id: str = FLEET
    """The local run that serves it."""


class SerialLink(NamedTuple):
    """What an evaluation of a serial group waits for, by evaluation ids."""

    follows: str
    recalls: tuple[tuple[str, str | None], ...] = ()
    """Whose answer it needs, and the field it becomes; None for an earlier turn of the conversation."""


class AcceptedEvaluation(NamedTuple):
    """An evaluation as it is accepted: its opening, and what people join by."""

    event: Event
    body: bytes
    shard: int
    case_id: str
    variant: int
    repetition: int
    cache_key: str | None = None
    link: SerialLink | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that was submitted, as the ledger has it."""

    batch_id: str
    month: date
    name: str
    project: str
    priority: int
    spec: bytes
    state: str
    reason: str
    total: int
    ended: int
    published: int
    published_to: str
    deadline: datetime | None
    finished: bool
    accepted_at: datetime | None = None
    max_cost_usd: Decimal | None = None
    max_tokens: int | None = None
    spent_usd: Decimal = ZERO
    spent_tokens: int = 0
    failed: int = 0
    completed: int = 0
    unrecorded_usd: Decimal = ZERO
    """Estimated cost of calls that no event records."""
    unrecorded_tokens: int = 0
    next_usd: Decimal = ZERO
    next_tokens: int = 0
    run_id: str = FLEET
    """The local run that serves it: a fencing token, which each run replaces."""

    @property
    def allowed_seconds(self) -> float:
        """How long it was allowed to take; nothing where nobody set a limit."""
        if self.deadline is None or self.accepted_at is None:
            return 0.0
        return max(0.0, (self.deadline - self.accepted_at).total_seconds())

    @property
    def budget(self) -> Budget:
        """What it may cost, and what it has cost."""
        return Budget(
            *(self.max_cost_usd, self.max_tokens),
            self.spent_usd + self.unrecorded_usd,
            self.spent_tokens + self.unrecorded_tokens,
            *(self.next_usd, self.next_tokens),
            *(self.unrecorded_usd, self.unrecorded_tokens),
        )

    @property
    def has_budget(self) -> bool:
        """Whether its spend is limited."""
        return self.max_cost_usd is not None or self.max_tokens is not None

    @property
    def in_flight(self) -> int:
        """Evaluations within the windows so far that have not ended."""
        return max(0, self.published - self.ended)


class EvaluationState(NamedTuple):
    """Where an evaluation stands, for whoever must decide what to do about it."""

    row: EvaluationRow
    epoch: str
    """In which its newest attempt was published; empty if nobody was ever told of it."""
    published: bool
    """False for an ending that executors may not have been told of."""


class FailedEvaluation(NamedTuple):
    """Why an evaluation failed, and how soon."""

    kind: str
    message: str
    was_tried: bool
    """False where it was given up before anybody was asked."""
    is_at_once: bool
    """Whether it failed for good when it was first tried: not after retries, nor because executors died."""


class UnreachableEvaluation(NamedTuple):
    """An evaluation that waits because no connection to its target or judge could be made."""

    evaluation_id: str
    attempt: int
    variant: int
    message: str


class UnpublishedOpening(NamedTuple):
    """Openings that nobody may have been told of, as they are to be appended."""

    evaluation_id: str
    events: tuple[tuple[Event, bytes], ...]


class DueLink(NamedTuple):
    """An evaluation of a serial group whose turn has come."""

    evaluation_id: str
    link: SerialLink


class AttemptOpening(NamedTuple):
    """The events that open the next attempt of an evaluation, and the epoch they are meant for."""

    events: Sequence[Event]
    epoch: str
    asks: bool = False
    """Whether nobody is told of it, because its answer is to come from a provider batch."""


Decide = Callable[[EvaluationState, Mapping[EventKey, Event]], AttemptOpening | None]
"""Given the locked row and all its events: what to open, or None to leave it."""


class OpenedAttempt(NamedTuple):
    """An attempt that is open, or ended at once, in Postgres: to be published."""

    evaluation_id: str
    events: tuple[tuple[Event, bytes], ...]
    epoch: str
    was_published: bool
    """Whether executors had been told of the evaluation before; if not, an ending concerns nobody."""
    progress: Progress
    """What it added to the counters of its batch."""


class BatchExists(Exception):  # noqa: N818 - what is the matter
    """There is a batch of this id already."""


class Ledger(Protocol):
    """The coordinator's own view of the tables."""

    async def now(self) -> datetime:
        """Return the time of the server that stores the tables: all that they date is on this clock."""
        ...

    async def accept(
        self, head: BatchHead, evaluations: AsyncIterator[AcceptedEvaluation], *, now: datetime
    ) -> int:
        """Commit a batch and all its evaluations, or nothing; returns how many there are."""
        ...

    async def cached(self, cache_keys: Sequence[str]) -> Mapping[str, Event]:
        """Return the newest `responded` event to each question that has one."""
        ...

    async def unfinished(self, run_id: str = FLEET) -> list[Batch]:
        """List submitted batches that are not over and that this run serves, or the fleet."""
        ...

    async def batch(self, batch_id: str) -> Batch | None:
        """Return one submitted batch."""
        ...

    async def led_elsewhere(self, batch_ids: Sequence[str], run_id: str = FLEET) -> set[str]:
        """Return those of these batches that are not over and that another run serves."""
        ...

    async def assign_run(self, batch_id: str, run_id: str, *, by: str, reason: str = "") -> None:
        """Let this run serve a batch, and no other."""
        ...

    async def request_state(
        self, batch_id: str, state: str, *, by: str, reason: str = "", run_id: str | None = None
    ) -> bool:
        """Write down what is asked of a batch; False if it was so already, or can't be.

        With a run id: only while that run serves it.
        """
        ...

    async def set_budget(self, batch_id: str, budget: Budget, *, by: str, reason: str = "") -> None:
        """Write down what a batch may cost from now on."""
        ...

    async def note_unrecorded(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        """Record the estimated spend that no event records; a smaller figure changes nothing."""
        ...

    async def note_next(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        """Record what the next call may cost; cleared when the batch goes on."""
        ...

    async def spent_by_source(self, batch_id: str) -> Mapping[str, tuple[Decimal, int]]:
        """Sum the recorded spend of a batch by the source of the events: cost and tokens."""
        ...

    async def failures(self, batch_id: str, *, limit: int) -> list[FailedEvaluation]:
        """Return the newest failures of a batch, the newest first."""
        ...

    async def unreached(self, batch: Batch, *, kind: str, limit: int) -> list[UnreachableEvaluation]:
        """Return evaluations that wait after a fault of a kind, of variants of which none is completed."""
        ...

    async def finish(self, batch_id: str) -> bool:
        """Write down that a batch is over; False if something of it is still open."""
        ...

    async def reopen(self, batch_id: str, *, by: str, reason: str = "") -> None:
        """Write down that a batch goes on, though it may have been over."""
        ...

    async def next_window(self, batch: Batch, *, limit: int) -> tuple[list[UnpublishedOpening], str]:
        """Return the openings after what is published, and the last id looked at.

        Those that wait for their turn in a serial group come without events.
        """
        ...

    async def open_window(
        self, batch: Batch, *, last_id: str, size: int, epochs: Sequence[str], asked: Sequence[str] = ()
    ) -> bool:
        """Write down, before anybody is told, which evaluations are published in which epochs.

        Of those `asked` nobody is told: their answers are to come from provider batches.
        """
        ...

    async def unmoved(  # noqa: PLR0913 - a page of a selection
        self,
        batch: Batch,
        *,
        after: str,
        unchanged_for: timedelta,
        hung_after: timedelta,
        live: Sequence[str],
        queued: bool,
        limit: int,
    ) -> list[EvaluationState]:
        """Return a page of published evaluations that have not ended nor moved for a while.

        Left out are those that wait to be tried again, those whose owner is live and within its time,
        and, where nobody doubts that somebody will come for them, those that are queued.
        """
        ...

    async def due_retries(self, batch: Batch, *, now: datetime, limit: int) -> list[EvaluationState]:
        """Return evaluations whose next attempt is due."""
        ...

    async def standings(self, evaluation_ids: Sequence[str]) -> list[EvaluationState]:
        """Return where some evaluations stand."""
        ...

    async def openings(self, evaluation_ids: Sequence[str]) -> list[UnpublishedOpening]:
        """Return the events that the newest attempts of some evaluations were opened with."""
        ...

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, Event]]:
        """Return all events the log for good has of some evaluations."""
        ...

    async def open_attempts(self, evaluation_ids: Sequence[str], decide: Decide) -> list[OpenedAttempt]:
        """Open the next attempt of each, as `decide` says inside the transaction, its row locked.

        A batch that was over goes on with it: nothing is ever open in a batch that nobody looks after.
        """
        ...

    async def unpublished_endings(self, *, limit: int) -> list[UnpublishedOpening]:
        """Return endings that executors may not have been told of."""
        ...

    async def mark_published(self, evaluation_ids: Sequence[str]) -> None:
        """Write down that executors can no longer miss these endings."""
        ...

    async def open_ids(self, batch_id: str, *, after: str, limit: int) -> list[str]:
        """Name a page of evaluations that have not ended."""
        ...

    async def dead_ids(self, batch_id: str, *, after: str, limit: int) -> list[str]:
        """Name a page of evaluations that failed or timed out."""
        ...

    async def due_links(self, batch_id: str, *, limit: int) -> list[DueLink]:
        """Return evaluations of serial groups whose predecessor has ended and that nobody was told of."""
        ...

    async def links(self, evaluation_ids: Sequence[str]) -> Mapping[str, SerialLink]:
        """Return the links of those of these evaluations that are in a serial group."""
        ...

    async def release(
        self, evaluation_ids: Sequence[str], epochs: Sequence[str]
    ) -> list[UnpublishedOpening]:
        """Write down, before anybody is told, in which epochs these are published."""
        ...
