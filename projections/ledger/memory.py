"""The ledger in memory, over the projection store in memory, for unit tests and simulation.

No method suspends before it is done, so each is a transaction as in PostgreSQL.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import islice

from domain.ids import FLEET
from eventlog import payloads as p
from eventlog.codec import decode_body, encode
from eventlog.events import Event, EventKey
from eventlog.keys import shard_of
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from projections.database.errors import UnstorableData
from projections.folds.change import Change, EvaluationRow
from projections.folds.progress import Progress
from projections.folds.scorecard import EXACT, ZERO, exact
from projections.ledger.batch import Batch, Budget, NewBatch
from projections.ledger.contract import (
    LONGEST_RETRY_DELAY,
    AcceptedEvaluation,
    AttemptOpening,
    BatchExists,
    Decide,
    DueLink,
    EvaluationState,
    FailedEvaluation,
    OpenedAttempt,
    SerialLink,
    UnpublishedOpening,
    UnreachableEvaluation,
)
from projections.ledger.memory_batches import BatchEvent, MemoryBatches, PublishedWindow
from projections.ledger.opening_rows import accepted_row, newest_attempt, opening_change
from projections.store.memory import MemoryStore

Decided = tuple[EvaluationState, AttemptOpening]


@dataclass(slots=True)
class _Publication:
    """Publication state of an evaluation."""

    epoch: str = ""
    published: bool = True
    asked_in: str | None = None
    """The provider batch it waits for; empty until it is assigned to one."""


class MemoryLedger:
    """`Ledger` without a server; `now` is the database's time of day."""

    def __init__(self, tables: MemoryStore, *, shards: int, now: Callable[[], datetime]) -> None:
        self.tables = tables
        self.batches = MemoryBatches(tables.horizons)
        self._shards = shards
        self._now = now
        self._links: dict[str, SerialLink] = {}
        self._publications: dict[str, _Publication] = defaultdict(_Publication)
        self.published_apart: dict[str, int] = defaultdict(int)
        """Published evaluations that no window counts, because they waited for a provider batch."""
        self._responses: dict[str, list[str]] = defaultdict(list)

    async def now(self) -> datetime:
        return self._now()

    async def accept(
        self, batch: NewBatch, evaluations: AsyncIterator[AcceptedEvaluation], *, now: datetime
    ) -> int:
        accepted = [one async for one in evaluations]
        self._refuse_known(batch.batch_id, [one.event.evaluation_id for one in accepted])
        month = now.astimezone(UTC).date().replace(day=1)
        self.tables.batches[batch.batch_id] = month
        for one in accepted:
            self._insert(batch.batch_id, month, one)
        self.batches.accept(batch, month=month, now=now)
        return len(accepted)

    def _refuse_known(self, batch_id: str, evaluation_ids: Sequence[str]) -> None:
        if batch_id in self.tables.batches:
            raise BatchExists(batch_id)
        if (
            len(set(evaluation_ids)) < len(evaluation_ids)
            or self.tables.evaluations.keys() & evaluation_ids
        ):
            raise UnstorableData(f"{batch_id} has evaluations that are there already")

    def _insert(self, batch_id: str, month: date, one: AcceptedEvaluation) -> None:
        key, event = one.event.evaluation_id, accepted_row(month, one)
        self.tables.insert(EvaluationRow(key, batch_id, month, Cursor(1, 0, Phase.QUEUED)), event)
        counted = self.tables.progress.setdefault((batch_id, one.shard), Progress())
        counted += Progress(total=1)
        if one.link:
            self._links[key] = one.link
        if one.cache_key:
            self._responses[one.cache_key].append(key)

    async def cached(self, cache_keys: Sequence[str]) -> Mapping[str, Event]:
        found = {key: self._answers(self._responses.get(key, ())) for key in cache_keys}
        return {
            key: max(answers, key=lambda event: event.occurred_at)
            for key, answers in found.items()
            if answers
        }

    def _answers(self, evaluation_ids: Iterable[str]) -> list[Event]:
        logged = (event for key in evaluation_ids for event in self._logged(key).values())
        return [event for event in logged if isinstance(event.data, p.Responded)]

    # -- batches

    async def unfinished(self, run_id: str = FLEET) -> list[Batch]:
        return [self._counted(batch) for batch in self.batches.unfinished() if batch.run_id == run_id]

    async def owned_by_other_runs(self, batch_ids: Sequence[str], run_id: str = FLEET) -> set[str]:
        others = {batch.batch_id for batch in self.batches.unfinished() if batch.run_id != run_id}
        return others.intersection(batch_ids)

    async def assign_run(self, batch_id: str, run_id: str, *, by: str, reason: str = "") -> None:
        self.batches.assign_run(run_id, BatchEvent(batch_id, "assigned", by, reason))

    async def batch(self, batch_id: str) -> Batch | None:
        return self._counted(self.batches.held[batch_id]) if batch_id in self.batches.held else None

    def _counted(self, batch: Batch) -> Batch:
        progress = Progress()
        for (key, _), counted in self.tables.progress.items():
            if key == batch.batch_id:
                progress += counted
        budget = batch.budget._replace(
            spent_usd=progress.cost_usd + batch.budget.unrecorded_usd,
            spent_tokens=progress.tokens + batch.budget.unrecorded_tokens,
        )
        published = self.batches.published(batch.batch_id) + self.published_apart[batch.batch_id]
        return replace(batch, published=published, budget=budget, progress=progress)

    async def request_state(
        self, batch_id: str, state: str, *, by: str, reason: str = "", run_id: str | None = None
    ) -> bool:
        return self.batches.request_state(BatchEvent(batch_id, state, by, reason), run_id=run_id)

    async def set_budget(self, batch_id: str, budget: Budget, *, by: str, reason: str = "") -> None:
        self.batches.set_budget(budget, BatchEvent(batch_id, "budget", by, reason))

    async def set_unrecorded_spend(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        self.batches.set_unrecorded_spend(batch_id, usd, tokens)

    async def set_next_call_cost(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        self.batches.set_next_call_cost(batch_id, usd, tokens)

    async def spent_by_source(self, batch_id: str) -> Mapping[str, tuple[Decimal, int]]:
        spent: dict[str, tuple[Decimal, int]] = {}
        for event in map(decode_body, [row.event for row in self.tables.events.values()]):
            data = event.data
            if event.batch_id != batch_id or not isinstance(data, p.Responded | p.Scored):
                continue
            if not (isinstance(data, p.Responded) and data.cached):
                cost, tokens = spent.get(event.source, (ZERO, 0))
                spent[event.source] = EXACT.add(cost, exact(data.cost_usd)), tokens + data.usage.total
        return spent

    async def failures(self, batch_id: str, *, limit: int) -> list[FailedEvaluation]:
        cards = self.tables.scorecards.values()
        failed = [card for card in cards if card.batch_id == batch_id and card.status == "failed"]
        stored = {card.evaluation_id: self.tables.evaluations[card.evaluation_id] for card in failed}
        newest = sorted(
            sorted(failed), key=lambda card: stored[card.evaluation_id].updated_at, reverse=True
        )[:limit]
        return [self._failure(card.evaluation_id) for card in newest]

    async def unreached(self, batch: Batch, *, kind: str, limit: int) -> list[UnreachableEvaluation]:
        cards = self.tables.scorecards.values()
        done = {
            self._variant(card.evaluation_id)
            for card in cards
            if card.batch_id == batch.batch_id and card.status == "completed"
        }
        keys = (key for key in self._open(batch.batch_id) if key <= batch.published_to)
        found = (self._unreached(key, kind) for key in keys)
        waiting = list(islice((each for each in found if each), limit))
        return [each for each in waiting if each.variant not in done]

    def _unreached(self, key: str, kind: str) -> UnreachableEvaluation | None:
        attempt, sequence, _ = self.tables.evaluations[key].row.cursor
        closing = self._logged(key)[attempt, sequence].data
        if not isinstance(closing, p.Retrying) or closing.error.kind != kind:
            return None
        return UnreachableEvaluation(key, attempt, self._variant(key), closing.error.message)

    def _variant(self, key: str) -> int:
        opening = self._logged(key)[1, 0].data
        return opening.variant if isinstance(opening, p.Queued) else 0

    def _failure(self, key: str) -> FailedEvaluation:
        attempt, sequence, _ = self.tables.evaluations[key].row.cursor
        logged = self._logged(key)
        opening, closing = logged[attempt, 0].data, logged[attempt, sequence].data
        if not isinstance(closing, p.Failed) or not isinstance(opening, p.Queued):
            raise TypeError(f"{key} has not failed")
        is_lost = opening.reason is p.OpeningReason.LOST
        again = is_lost or opening.reason is p.OpeningReason.RETRY
        return FailedEvaluation(
            closing.error.kind, closing.error.message, sequence > 1 or is_lost, not again
        )

    async def finish(self, batch_id: str) -> bool:
        return not self._open(batch_id) and self.batches.finish(batch_id)

    async def reopen(self, batch_id: str, *, by: str, reason: str = "") -> None:
        self.batches.reopen(BatchEvent(batch_id, "running", by, reason), now=self._now())

    async def next_window(self, batch: Batch, *, limit: int) -> tuple[list[UnpublishedOpening], str]:
        keys = [key for key in self._open(batch.batch_id) if key > batch.published_to][:limit]
        openings = [self._unpublished(key, [] if key in self._links else [(1, 0)]) for key in keys]
        return openings, keys[-1] if keys else batch.published_to

    async def open_window(
        self,
        batch: Batch,
        *,
        last_id: str,
        size: int,
        epochs: Sequence[str],
        by_provider: Sequence[str] = (),
    ) -> bool:
        opened = self.batches.open_window(batch, PublishedWindow(last_id, size, tuple(epochs)))
        for key in by_provider if opened else ():
            self._publications[key].asked_in = ""
        return opened

    # -- evaluations

    def _open(self, batch_id: str) -> list[str]:
        held = self.tables.evaluations.items()
        return sorted(key for key, each in held if each.row.batch_id == batch_id and not each.ended_at)

    def _evaluation_state(self, key: str) -> EvaluationState:
        row = self.tables.evaluations[key].row
        return EvaluationState(row, self._epoch_of(row), self._publications[key].published)

    def _epoch_of(self, row: EvaluationRow) -> str:
        """Return the epoch in which the newest attempt was published; empty if it was not."""
        known = self._publications[row.evaluation_id]
        by_provider = known.asked_in is not None
        if known.epoch or row.cursor.attempt > 1 or by_provider or row.evaluation_id in self._links:
            return known.epoch
        window = self.batches.window_of(row)
        return window.epochs[shard_of(row.evaluation_id, self._shards)] if window else ""

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

        def is_doubtful(key: str) -> bool:
            held = self.tables.evaluations[key]
            unmoved = timedelta(seconds=self.tables.clock() - held.updated_at)
            if self._publications[key].asked_in is not None:
                return False
            if unmoved <= unchanged_for or held.row.cursor.phase is Phase.RETRYING:
                return False
            if held.row.cursor.phase is Phase.QUEUED and not queued:
                return False
            return not (held.row.owner in live and unmoved < hung_after)

        keys = (key for key in self._open(batch.batch_id) if after < key <= batch.published_to)
        return [self._evaluation_state(key) for key in islice(filter(is_doubtful, keys), limit)]

    async def due_retries(self, batch: Batch, *, now: datetime, limit: int) -> list[EvaluationState]:

        def is_due(key: str) -> bool:
            held = self.tables.evaluations[key]
            if held.row.cursor.phase is not Phase.RETRYING:
                return False
            closing = self._logged(key)[held.row.cursor[:2]]
            if not isinstance(closing.data, p.Retrying):
                return True
            stored = now - timedelta(seconds=self.tables.clock() - held.updated_at)
            delay = min(closing.data.retry_at - closing.occurred_at, LONGEST_RETRY_DELAY)
            return stored + max(delay, timedelta(0)) <= now

        keys = (key for key in self._open(batch.batch_id) if key <= batch.published_to)
        return [self._evaluation_state(key) for key in islice(filter(is_due, keys), limit)]

    async def evaluation_states(self, evaluation_ids: Sequence[str]) -> list[EvaluationState]:
        known = self.tables.evaluations.keys() & set(evaluation_ids)
        return [self._evaluation_state(key) for key in sorted(known)]

    async def openings(self, evaluation_ids: Sequence[str]) -> list[UnpublishedOpening]:
        evaluation_states = await self.evaluation_states(evaluation_ids)
        return [self._opening(one.row) for one in evaluation_states]

    def _opening(self, row: EvaluationRow) -> UnpublishedOpening:
        """Return sequence 0, and what the coordinator appended after it."""
        attempt = row.cursor.attempt
        second = self.tables.events.get((row.evaluation_id, attempt, 1))
        gave_up = second is not None and second.type == "failed"
        return self._unpublished(row.evaluation_id, [(attempt, 0), (attempt, 1)][: 1 + gave_up])

    def _unpublished(self, key: str, places: Iterable[EventKey]) -> UnpublishedOpening:
        bodies = [self.tables.events[(key, *place)].event for place in places]
        return UnpublishedOpening(key, tuple((decode_body(body), body) for body in bodies))

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, Event]]:
        return {row.evaluation_id: self._logged(row.evaluation_id) for row in rows}

    def _logged(self, key: str) -> dict[EventKey, Event]:
        stored = self.tables.stored_of(key)
        return {place: decode_body(row.event) for place, row in stored.items()}

    # -- attempts

    async def open_attempts(self, evaluation_ids: Sequence[str], decide: Decide) -> list[OpenedAttempt]:
        evaluation_states = await self.evaluation_states(evaluation_ids)
        decided = [(one, decide(one, self._logged(one.row.evaluation_id))) for one in evaluation_states]
        return await self._open_all([(one, opening) for one, opening in decided if opening is not None])

    async def _open_all(self, decided: Sequence[Decided]) -> list[OpenedAttempt]:
        opened, changes = [], []
        for state, opening in decided:
            events = tuple((event, encode(event)) for event in opening.events)
            change = opening_change(state.row, events, shards=self._shards)
            changes.append(change)
            was_published = state.epoch != ""
            key, newest = state.row.evaluation_id, newest_attempt(events)
            one = OpenedAttempt(key, newest, opening.epoch, was_published, change.progress)
            opened.append(one)
        await self.tables.commit(changes)
        for one, change, (_, opening) in zip(opened, changes, decided, strict=True):
            if change.moves:
                self._record_publication(one, change, by_provider=opening.by_provider)
        return [one for one, change in zip(opened, changes, strict=True) if change.moves]

    def _record_publication(self, one: OpenedAttempt, change: Change, *, by_provider: bool) -> None:
        known = not (change.ended_at and one.was_published)
        was_by_provider = self._publications[one.evaluation_id].asked_in is not None
        self.published_apart[change.batch_id] += was_by_provider - by_provider
        self._publications[one.evaluation_id] = _Publication(
            one.epoch, published=known, asked_in="" if by_provider else None
        )
        if not change.ended_at:
            self.batches.keep_open(change.batch_id)

    async def unpublished_endings(self, *, limit: int) -> list[UnpublishedOpening]:
        keys = sorted(key for key, known in self._publications.items() if not known.published)
        return await self.openings(keys[:limit])

    async def mark_published(self, evaluation_ids: Sequence[str]) -> None:
        for key in evaluation_ids:
            self._publications[key].published = True

    async def open_ids(self, batch_id: str, *, after: str, limit: int) -> list[str]:
        return [key for key in self._open(batch_id) if key > after][:limit]

    async def dead_ids(self, batch_id: str, *, after: str, limit: int) -> list[str]:
        cards = self.tables.scorecards.values()
        dead = (card for card in cards if card.status in {"failed", "timed_out"})
        keys = sorted(card.evaluation_id for card in dead if card.batch_id == batch_id)
        return [key for key in keys if key > after][:limit]

    # -- serial groups

    async def due_links(self, batch_id: str, *, limit: int) -> list[DueLink]:
        held, batch = self.tables.evaluations, self.batches.held.get(batch_id)
        waiting = (
            DueLink(key, self._links[key])
            for key in self._open(batch_id)
            if batch
            and key <= batch.published_to
            and key in self._links
            and not self._publications[key].epoch
        )
        due = (one for one in waiting if one.link.follows in held and held[one.link.follows].ended_at)
        return list(islice(due, limit))

    async def links(self, evaluation_ids: Sequence[str]) -> Mapping[str, SerialLink]:
        return {key: self._links[key] for key in evaluation_ids if key in self._links}

    async def release(
        self, evaluation_ids: Sequence[str], epochs: Sequence[str]
    ) -> list[UnpublishedOpening]:
        released = []
        for one in await self.evaluation_states(evaluation_ids):
            held = self.tables.evaluations[one.row.evaluation_id]
            publication = self._publications[one.row.evaluation_id]
            if not publication.epoch and held.ended_at is None:
                publication.epoch = epochs[shard_of(one.row.evaluation_id, self._shards)]
                released.append(one.row.evaluation_id)
        return await self.openings(released)
