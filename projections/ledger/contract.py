"""The contract of the ledger: the coordinator's store of batches and attempts.

PostgreSQL is the commit point: a batch is accepted, an attempt opened and an evaluation ended when the
ledger has committed it, and only then is it published. Every method is idempotent or a compare-and-set.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple, Protocol

from domain.ids import FLEET
from eventlog.events import Event, EventKey
from projections.folds.change import EvaluationRow
from projections.folds.progress import Progress
from projections.ledger.batch import Batch, Budget, NewBatch

LONGEST_RETRY_DELAY = timedelta(days=1)
"""The longest delay of a retry, counted from when the end of its attempt was stored."""


class SerialLink(NamedTuple):
    """The predecessor of an evaluation in its serial group, and the answers it needs, by evaluation ids."""

    follows: str
    recalls: tuple[tuple[str, str | None], ...] = ()
    """Whose answer it needs, and the field it becomes; None for an earlier turn of the conversation."""


class AcceptedEvaluation(NamedTuple):
    """An evaluation as it is accepted: its opening event, and the keys that reports join on."""

    event: Event
    body: bytes
    shard: int
    case_id: str
    variant: int
    repetition: int
    cache_key: str | None = None
    link: SerialLink | None = None


class EvaluationState(NamedTuple):
    """The row of an evaluation with its publication state."""

    row: EvaluationRow
    epoch: str
    """The epoch in which its newest attempt was published; empty if it was not."""
    published: bool
    """False for an ending that may not be in its stream yet."""


class FailedEvaluation(NamedTuple):
    """Why an evaluation failed, and how soon."""

    kind: str
    message: str
    was_tried: bool
    """False where it ended before any call was made."""
    is_at_once: bool
    """Whether it failed for good when it was first tried: not after retries, nor because executors died."""


class UnreachableEvaluation(NamedTuple):
    """An evaluation that retries because no connection to its target or judge could be made."""

    evaluation_id: str
    attempt: int
    variant: int
    message: str


class UnpublishedOpening(NamedTuple):
    """Opening events that may not be published, as they are to be appended."""

    evaluation_id: str
    events: tuple[tuple[Event, bytes], ...]


class DueLink(NamedTuple):
    """An evaluation of a serial group whose predecessor has ended."""

    evaluation_id: str
    link: SerialLink


class AttemptOpening(NamedTuple):
    """The events that open the next attempt of an evaluation, and the epoch they are meant for."""

    events: Sequence[Event]
    epoch: str
    by_provider: bool = False
    """Whether it is not published, because its answer comes from a provider batch."""


Decide = Callable[[EvaluationState, Mapping[EventKey, Event]], AttemptOpening | None]
"""Decides, from the locked row and all its events, what to open; None opens nothing."""


class OpenedAttempt(NamedTuple):
    """An attempt that is open, or ended at once, in Postgres: to be published."""

    evaluation_id: str
    events: tuple[tuple[Event, bytes], ...]
    epoch: str
    was_published: bool
    """Whether the evaluation was published before; if not, its ending need not be."""
    progress: Progress
    """Counters that it added to its batch."""


class BatchExists(Exception):  # noqa: N818 - names the conflict
    """A batch has this id already."""


class Ledger(Protocol):
    """The coordinator's store of batches and attempts; implemented on PostgreSQL and in memory."""

    async def now(self) -> datetime:
        """Return the time of the database server, which dates all rows."""
        ...

    async def accept(
        self, batch: NewBatch, evaluations: AsyncIterator[AcceptedEvaluation], *, now: datetime
    ) -> int:
        """Commit a batch and all its evaluations in one transaction; returns their number."""
        ...

    async def cached(self, cache_keys: Sequence[str]) -> Mapping[str, Event]:
        """Return the newest `responded` event of each cache key that has one."""
        ...

    async def unfinished(self, run_id: str = FLEET) -> list[Batch]:
        """List the unfinished submitted batches of a run, or of the fleet."""
        ...

    async def batch(self, batch_id: str) -> Batch | None:
        """Return one submitted batch."""
        ...

    async def owned_by_other_runs(self, batch_ids: Sequence[str], run_id: str = FLEET) -> set[str]:
        """Return those of these unfinished batches that another run serves."""
        ...

    async def assign_run(self, batch_id: str, run_id: str, *, by: str, reason: str = "") -> None:
        """Set the run that serves a batch: processes of the previous run no longer serve it."""
        ...

    async def request_state(
        self, batch_id: str, state: str, *, by: str, reason: str = "", run_id: str | None = None
    ) -> bool:
        """Write down what is asked of a batch; False if it was so already, or can't be.

        With a run id: only while that run serves it.
        """
        ...

    async def set_budget(self, batch_id: str, budget: Budget, *, by: str, reason: str = "") -> None:
        """Set the budget of a batch."""
        ...

    async def set_unrecorded_spend(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        """Record the estimated spend that no event records; a smaller figure changes nothing."""
        ...

    async def set_next_call_cost(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        """Record what the next call may cost; cleared when the batch resumes."""
        ...

    async def spent_by_source(self, batch_id: str) -> Mapping[str, tuple[Decimal, int]]:
        """Sum the recorded spend of a batch by the source of the events: cost and tokens."""
        ...

    async def failures(self, batch_id: str, *, limit: int) -> list[FailedEvaluation]:
        """Return the newest failures of a batch, the newest first."""
        ...

    async def unreached(self, batch: Batch, *, kind: str, limit: int) -> list[UnreachableEvaluation]:
        """Return evaluations that retry after a fault of a kind, of variants without a completed one."""
        ...

    async def finish(self, batch_id: str) -> bool:
        """Finish a batch; False if it has an open evaluation."""
        ...

    async def reopen(self, batch_id: str, *, by: str, reason: str = "") -> None:
        """Set a batch running again, even if it was finished."""
        ...

    async def next_window(self, batch: Batch, *, limit: int) -> tuple[list[UnpublishedOpening], str]:
        """Return the unpublished openings of the next window, and its last id.

        Those that wait for a predecessor in a serial group come without events.
        """
        ...

    async def open_window(
        self,
        batch: Batch,
        *,
        last_id: str,
        size: int,
        epochs: Sequence[str],
        by_provider: Sequence[str] = (),
    ) -> bool:
        """Record, before publication, which evaluations are published in which epochs (compare-and-set).

        Those in `by_provider` are not published: their answers come from provider batches.
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
        """Return a page (keyset pagination) of published, open evaluations unchanged for a while.

        Excluded are retrying ones, those whose owner is live and within its time, and without `queued`
        those that are queued.
        """
        ...

    async def due_retries(self, batch: Batch, *, now: datetime, limit: int) -> list[EvaluationState]:
        """Return evaluations whose next attempt is due."""
        ...

    async def evaluation_states(self, evaluation_ids: Sequence[str]) -> list[EvaluationState]:
        """Return some evaluations with their publication state."""
        ...

    async def openings(self, evaluation_ids: Sequence[str]) -> list[UnpublishedOpening]:
        """Return the events that the newest attempts of some evaluations were opened with."""
        ...

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, Event]]:
        """Return all stored events of some evaluations."""
        ...

    async def open_attempts(self, evaluation_ids: Sequence[str], decide: Decide) -> list[OpenedAttempt]:
        """Open the next attempt of each, as `decide` returns inside the transaction, with its row locked.

        A finished batch is reopened: no evaluation is ever open in a finished batch.
        """
        ...

    async def unpublished_endings(self, *, limit: int) -> list[UnpublishedOpening]:
        """Return endings that may not be in their streams."""
        ...

    async def mark_published(self, evaluation_ids: Sequence[str]) -> None:
        """Mark endings as published."""
        ...

    async def open_ids(self, batch_id: str, *, after: str, limit: int) -> list[str]:
        """Return a page of ids of open evaluations."""
        ...

    async def dead_ids(self, batch_id: str, *, after: str, limit: int) -> list[str]:
        """Return a page of ids of dead letters."""
        ...

    async def due_links(self, batch_id: str, *, limit: int) -> list[DueLink]:
        """Return unpublished evaluations of serial groups whose predecessor has ended."""
        ...

    async def links(self, evaluation_ids: Sequence[str]) -> Mapping[str, SerialLink]:
        """Return the links of those of these evaluations that are in serial groups."""
        ...

    async def release(
        self, evaluation_ids: Sequence[str], epochs: Sequence[str]
    ) -> list[UnpublishedOpening]:
        """Record, before publication, the epochs in which these evaluations are published."""
        ...
