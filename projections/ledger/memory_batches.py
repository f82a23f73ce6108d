"""The batches of the ledger in memory."""

from collections import defaultdict
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from domain.batch_spec import pack
from projections.folds.change import EvaluationRow
from projections.folds.scorecard import ZERO
from projections.ledger.batch import Batch, Budget, NewBatch


class PublishedWindow(NamedTuple):
    """Evaluations that were published together."""

    last_id: str
    evaluations: int
    epochs: tuple[str, ...]


class BatchEvent(NamedTuple):
    """A row of `batch_events`: a requested state, an assignment, or the end of a batch."""

    batch_id: str
    type: str
    by: str
    reason: str = ""


class MemoryBatches:
    """The tables `batches`, `batch_events` and `batch_windows`; publishes the horizon of sweeps."""

    def __init__(self, horizons: dict[str, str]) -> None:
        self.held: dict[str, Batch] = {}
        self.events: list[BatchEvent] = []
        self.windows: dict[str, list[PublishedWindow]] = defaultdict(list)
        self._horizons = horizons

    def _put(self, batch: Batch) -> None:
        self.held[batch.batch_id] = batch
        self._horizons[batch.batch_id] = "" if batch.finished else batch.published_to

    def accept(self, batch: NewBatch, *, month: date, now: datetime) -> None:
        """Add a batch."""
        self._put(_stored(batch, month, now))
        self.events.append(BatchEvent(batch.batch_id, "accepted", batch.submitted_by))

    def unfinished(self) -> list[Batch]:
        """List unfinished batches in the order of acceptance."""
        left = (batch for batch in self.held.values() if not batch.finished)
        return sorted(left, key=lambda batch: (batch.accepted_at, batch.batch_id))

    def assign_run(self, run_id: str, request: BatchEvent) -> None:
        """Set the run that serves a batch."""
        batch = self.held.get(request.batch_id)
        if batch and batch.run_id != run_id:
            self._put(replace(batch, run_id=run_id))
            self.events.append(request)

    def request_state(self, request: BatchEvent, *, run_id: str | None = None) -> bool:
        """Change a batch's state, unless it is over, was stopped, is so already, or has another run."""
        batch = self.held.get(request.batch_id)
        if batch is None or batch.finished or batch.state not in {"running", "paused"} - {request.type}:
            return False
        if run_id not in {None, batch.run_id}:
            return False
        batch = replace(batch, state=request.type, reason=request.reason)
        goes_on = request.type == "running"
        self._put(_with_budget(batch, next_usd=ZERO, next_tokens=0) if goes_on else batch)
        self.events.append(request)
        return True

    def set_unrecorded_spend(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        """Raise the estimated spend that no event records."""
        if batch := self.held.get(batch_id):
            budget = batch.budget
            usd, tokens = max(usd, budget.unrecorded_usd), max(tokens, budget.unrecorded_tokens)
            self._put(_with_budget(batch, unrecorded_usd=usd, unrecorded_tokens=tokens))

    def set_next_call_cost(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        """Set what the next call may cost."""
        if batch := self.held.get(batch_id):
            self._put(_with_budget(batch, next_usd=usd, next_tokens=tokens))

    def set_budget(self, budget: Budget, request: BatchEvent) -> None:
        """Change what a batch may cost."""
        if batch := self.held.get(request.batch_id):
            limits = {"max_cost_usd": budget.max_cost_usd, "max_tokens": budget.max_tokens}
            self._put(_with_budget(batch, **limits))
            self.events.append(request)

    def change_spec(self, spec: bytes, request: BatchEvent) -> bool:
        """Replace the spec of an unfinished batch."""
        batch = self.held.get(request.batch_id)
        if batch is None or batch.finished:
            return False
        self._put(replace(batch, spec=spec))
        self.events.append(request)
        return True

    def finish(self, batch_id: str) -> bool:
        """Finish an unfinished batch."""
        batch = self.held.get(batch_id)
        if batch is None or batch.finished:
            return False
        state = "completed" if batch.state in {"running", "paused"} else batch.state
        self._put(replace(batch, state=state, finished=True, published_to=f"{batch_id}/"))
        self.events.append(BatchEvent(batch_id, "finished", "coordinator"))
        return True

    def reopen(self, request: BatchEvent, *, now: datetime) -> None:
        """Set a batch running again."""
        if batch := self.held.get(request.batch_id):
            deadline = batch.deadline if batch.deadline and batch.deadline > now else None
            self._put(replace(batch, state="running", reason="", deadline=deadline, finished=False))
            self.events.append(request)

    def keep_open(self, batch_id: str) -> None:
        """Reopen a batch that was finished between an operator's request and the attempts it opened."""
        batch = self.held.get(batch_id)
        if batch and batch.finished:
            state = "cancelled" if batch.state == "cancelled" else "running"
            self._put(replace(batch, state=state, finished=False))

    def open_window(self, seen: Batch, window: PublishedWindow) -> bool:
        """Publish a window by compare-and-set on `published_to`, if the batch is running."""
        batch = self.held[seen.batch_id]
        if batch.published_to != seen.published_to or batch.state != "running":
            return False
        self._put(replace(batch, published_to=window.last_id))
        self.windows[seen.batch_id].append(window)
        return True

    def published(self, batch_id: str) -> int:
        """Count the evaluations of all windows."""
        return sum(window.evaluations for window in self.windows[batch_id])

    def window_of(self, row: EvaluationRow) -> PublishedWindow | None:
        """Return the window in which an evaluation was published."""
        windows = (window for window in self.windows[row.batch_id] if window.last_id >= row.evaluation_id)
        return min(windows, default=None)


def _with_budget(batch: Batch, **changes: Any) -> Batch:  # noqa: ANN401 - fields of `Budget`
    return replace(batch, budget=batch.budget._replace(**changes))


def _stored(batch: NewBatch, month: date, now: datetime) -> Batch:
    return Batch(
        batch.batch_id,
        month,
        batch.spec.name,
        batch.project,
        batch.priority,
        pack(batch.spec),
        state="running",
        reason="",
        published=0,
        published_to="",
        deadline=now + batch.max_duration if batch.max_duration else None,
        finished=False,
        accepted_at=now,
        run_id=batch.run_id,
        budget=Budget(batch.max_cost_usd, batch.max_tokens),
    )
