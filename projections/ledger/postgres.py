"""The ledger in PostgreSQL."""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool
from pydantic_core import from_json, to_json

from domain.batch_spec import pack
from domain.ids import FLEET
from eventlog.codec import decode_body, encode
from eventlog.events import Event, EventKey
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from projections.database.connection import transaction
from projections.folds.change import EvaluationRow, StoredEvent
from projections.folds.progress import Progress
from projections.ledger.batch import Batch, Budget, NewBatch, with_totals
from projections.ledger.contract import (
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
from projections.ledger.opening_rows import accepted_row, newest_attempt, opening_change
from projections.ledger.provider_batches_postgres import leave_provider_batches
from projections.sql import query
from projections.store.postgres import PostgresStore, add_progress, binary_rows, commit_changes, read_stored

Connection = AsyncConnection[Any]

ACCEPT_CHUNK = 2_000
"""Evaluations inserted by one COPY, at most."""
ACCEPT_BYTES = 4 * 1024 * 1024
"""Bytes of events and links after which a chunk is inserted, however few evaluations it has."""
LINK_BYTES = 200
"""Approximate memory of one link to an earlier evaluation."""
EVALUATION_TYPES = ("text", "text", "date", "int2", "int4", "int4", "text", "text", "int2", "int4")


class PostgresLedger:
    """`Ledger` on PostgreSQL."""

    def __init__(self, pool: AsyncConnectionPool, *, shards: int) -> None:
        self._pool = pool
        self._shards = shards
        self._tables = PostgresStore(pool)

    async def now(self) -> datetime:
        [(now,)] = await self._rows("ledger_now", [])
        found: datetime = now
        return found

    async def accept(
        self, batch: NewBatch, evaluations: AsyncIterator[AcceptedEvaluation], *, now: datetime
    ) -> int:
        # In its own transaction: creating a partition locks the whole log until the commit.
        await self._execute("ensure_month", [now])
        async with transaction(self._pool) as conn:
            month = await _insert_batch(conn, batch, now)
            totals: Counter[int] = Counter()
            async for chunk in _chunks(evaluations, ACCEPT_CHUNK):
                totals.update(one.shard for one in chunk)
                await _insert_chunk(conn, month, batch.batch_id, chunk)
            await _add_totals(conn, batch.batch_id, totals)
            accepted = {"batch_id": batch.batch_id, "by": batch.submitted_by, "total": totals.total()}
            await conn.execute(query("set_batch_total"), accepted)
        return totals.total()

    async def cached(self, cache_keys: Sequence[str]) -> Mapping[str, Event]:
        rows = await self._binary_rows("cached_responses", [list(cache_keys)])
        return {key: decode_body(body) for key, body in rows}

    async def unfinished(self, run_id: str = FLEET) -> list[Batch]:
        return await self._batches(None, run_id)

    async def owned_by_other_runs(self, batch_ids: Sequence[str], run_id: str = FLEET) -> set[str]:
        wanted = {"batch_ids": list(batch_ids), "run_id": run_id}
        return {batch_id for (batch_id,) in await self._rows("batches_of_other_runs", wanted)}

    async def assign_run(self, batch_id: str, run_id: str, *, by: str, reason: str = "") -> None:
        assigned = {"batch_id": batch_id, "run_id": run_id, "by": by, "reason": reason}
        await self._execute("assign_run", assigned)

    async def batch(self, batch_id: str) -> Batch | None:
        found = await self._batches(batch_id)
        return found[0] if found else None

    async def _batches(self, batch_id: str | None, run_id: str = FLEET) -> list[Batch]:
        async with transaction(self._pool) as conn:
            cursor = await conn.execute(query("ledger_batches"), {"batch_id": batch_id, "run_id": run_id})
            rows = await cursor.fetchall()
        return [Batch(*with_totals(_with_bytes(row))) for row in rows]

    async def request_state(
        self, batch_id: str, state: str, *, by: str, reason: str = "", run_id: str | None = None
    ) -> bool:
        asked = {"batch_id": batch_id, "state": state, "by": by, "reason": reason, "run_id": run_id}
        return await self._execute("request_batch_state", asked) > 0

    async def set_budget(self, batch_id: str, budget: Budget, *, by: str, reason: str = "") -> None:
        limits = {"max_cost_usd": budget.max_cost_usd, "max_tokens": budget.max_tokens}
        await self._execute(
            "set_batch_budget", {"batch_id": batch_id, "by": by, "reason": reason, **limits}
        )

    async def set_unrecorded_spend(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        noted = {"batch_id": batch_id, "usd": usd, "tokens": tokens}
        await self._execute("raise_unrecorded_spend", noted)

    async def set_next_call_cost(self, batch_id: str, usd: Decimal, tokens: int) -> None:
        await self._execute("set_next_call_cost", {"batch_id": batch_id, "usd": usd, "tokens": tokens})

    async def spent_by_source(self, batch_id: str) -> Mapping[str, tuple[Decimal, int]]:
        rows = await self._rows("spent_by_source", {"batch_id": batch_id})
        return {source: (cost, tokens) for source, cost, tokens in rows}

    async def failures(self, batch_id: str, *, limit: int) -> list[FailedEvaluation]:
        rows = await self._rows("newest_failures", {"batch_id": batch_id, "limit": limit})
        return [FailedEvaluation(*row) for row in rows]

    async def unreached(self, batch: Batch, *, kind: str, limit: int) -> list[UnreachableEvaluation]:
        wanted = {
            "batch_id": batch.batch_id,
            "published_to": batch.published_to,
            "kind": kind,
            "limit": limit,
        }
        return [UnreachableEvaluation(*row) for row in await self._rows("unreachable_evaluations", wanted)]

    async def finish(self, batch_id: str) -> bool:
        async with transaction(self._pool) as conn:
            # Two statements: the second must see what the previous holder of the lock has opened.
            await conn.execute(query("lock_batch"), [batch_id])
            return (await conn.execute(query("finish_batch"), {"batch_id": batch_id})).rowcount > 0

    async def reopen(self, batch_id: str, *, by: str, reason: str = "") -> None:
        await self._execute("reopen_batch", {"batch_id": batch_id, "by": by, "reason": reason})

    async def next_window(self, batch: Batch, *, limit: int) -> tuple[list[UnpublishedOpening], str]:
        wanted = {
            "batch_id": batch.batch_id,
            "after": batch.published_to,
            "month": batch.month,
            "limit": limit,
        }
        rows = await self._binary_rows("next_window", wanted)
        openings = [
            UnpublishedOpening(key, () if waits else ((decode_body(body), body),))
            for key, body, waits in rows
        ]
        return openings, rows[-1][0] if rows else batch.published_to

    async def open_window(
        self,
        batch: Batch,
        *,
        last_id: str,
        size: int,
        epochs: Sequence[str],
        by_provider: Sequence[str] = (),
    ) -> bool:
        window = {
            "batch_id": batch.batch_id,
            "after": batch.published_to,
            "last_id": last_id,
            "size": size,
            "epochs": list(epochs),
            "by_provider": list(by_provider),
        }
        return await self._execute("open_window", window) > 0

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
        wanted = {
            "batch_id": batch.batch_id,
            "published_to": batch.published_to,
            "after": after,
            "unchanged_for": unchanged_for,
            "hung_after": hung_after,
            "live": list(live),
            "queued": queued,
            "limit": limit,
        }
        return [_evaluation_state(row) for row in await self._rows("unmoved_evaluations", wanted)]

    async def due_retries(self, batch: Batch, *, now: datetime, limit: int) -> list[EvaluationState]:
        wanted = {
            "batch_id": batch.batch_id,
            "published_to": batch.published_to,
            "now": now,
            "limit": limit,
        }
        return [_evaluation_state(row) for row in await self._rows("due_retries", wanted)]

    async def evaluation_states(self, evaluation_ids: Sequence[str]) -> list[EvaluationState]:
        return [
            _evaluation_state(row) for row in await self._rows("evaluation_states", [list(evaluation_ids)])
        ]

    async def openings(self, evaluation_ids: Sequence[str]) -> list[UnpublishedOpening]:
        found: dict[str, list[tuple[Event, bytes]]] = defaultdict(list)
        for key, body in await self._binary_rows("attempt_openings", [list(evaluation_ids)]):
            found[key].append((decode_body(body), body))
        return [UnpublishedOpening(key, tuple(events)) for key, events in found.items()]

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, Event]]:
        return _decoded(await self._tables.stored(rows))

    async def open_attempts(self, evaluation_ids: Sequence[str], decide: Decide) -> list[OpenedAttempt]:
        async with transaction(self._pool) as conn:
            await conn.execute(query("lock_batches"), [list(evaluation_ids)])
            rows = await (await conn.execute(query("lock_evaluations"), [list(evaluation_ids)])).fetchall()
            evaluation_states = [_evaluation_state(row) for row in rows]
            stored = _decoded(await read_stored(conn, [one.row for one in evaluation_states]))
            decided = [
                (one, decide(one, stored.get(one.row.evaluation_id, {}))) for one in evaluation_states
            ]
            opened = [(one, opening) for one, opening in decided if opening is not None]
            return await self._open(conn, opened)

    async def _open(
        self, conn: Connection, decided: Sequence[tuple[EvaluationState, AttemptOpening]]
    ) -> list[OpenedAttempt]:
        if not decided:
            return []
        opened = []
        changes = []
        for state, opening in decided:
            events = tuple((event, encode(event)) for event in opening.events)
            change = opening_change(state.row, events, shards=self._shards)
            changes.append(change)
            was_published = state.epoch != ""
            key, newest = state.row.evaluation_id, newest_attempt(events)
            one = OpenedAttempt(key, newest, opening.epoch, was_published, change.progress)
            opened.append(one)
        committed = await commit_changes(conn, changes)
        if committed.lost:
            raise RuntimeError(f"rows moved though they were locked: {sorted(committed.lost)[:3]}")
        await leave_provider_batches(conn, decided)
        # Events that opened nothing are stored, and not published.
        moved = [(one, change) for one, change in zip(opened, changes, strict=True) if change.moves]
        columns: list[list[Any]] = [
            [one.evaluation_id for one, _ in moved],
            [one.epoch for one, _ in moved],
            [not (change.ended_at and one.was_published) for one, change in moved],
        ]
        await conn.execute(query("set_epochs"), columns)
        going_on = sorted({change.batch_id for _, change in moved if not change.ended_at})
        await conn.execute(query("keep_batches_open"), [going_on])
        return [one for one, _ in moved]

    async def unpublished_endings(self, *, limit: int) -> list[UnpublishedOpening]:
        rows = await self._rows("unpublished_endings", [limit])
        return await self.openings([key for (key,) in rows]) if rows else []

    async def mark_published(self, evaluation_ids: Sequence[str]) -> None:
        await self._execute("mark_published", [list(evaluation_ids)])

    async def open_ids(self, batch_id: str, *, after: str, limit: int) -> list[str]:
        return await self._ids("open_evaluation_ids", batch_id, after, limit)

    async def dead_ids(self, batch_id: str, *, after: str, limit: int) -> list[str]:
        return await self._ids("dead_letter_ids", batch_id, after, limit)

    async def _ids(self, name: str, batch_id: str, after: str, limit: int) -> list[str]:
        wanted = {"batch_id": batch_id, "after": after, "limit": limit}
        return [key for (key,) in await self._rows(name, wanted)]

    async def due_links(self, batch_id: str, *, limit: int) -> list[DueLink]:
        rows = await self._rows("due_serial_links", {"batch_id": batch_id, "limit": limit})
        return [DueLink(key, SerialLink(follows, _recalls(recalls))) for key, follows, recalls in rows]

    async def links(self, evaluation_ids: Sequence[str]) -> dict[str, SerialLink]:
        rows = await self._rows("serial_links_of", [list(evaluation_ids)])
        return {key: SerialLink(follows, _recalls(recalls)) for key, follows, recalls in rows}

    async def release(
        self, evaluation_ids: Sequence[str], epochs: Sequence[str]
    ) -> list[UnpublishedOpening]:
        wanted = {"evaluation_ids": list(evaluation_ids), "epochs": list(epochs)}
        rows = await self._rows("publish_evaluations", wanted)
        return await self.openings([key for (key,) in rows]) if rows else []

    async def _execute(self, name: str, values: Any) -> int:  # noqa: ANN401 - as the query takes them
        async with transaction(self._pool) as conn:
            return (await conn.execute(query(name), values)).rowcount

    async def _rows(self, name: str, values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - as above
        async with transaction(self._pool) as conn:
            return await (await conn.execute(query(name), values)).fetchall()

    async def _binary_rows(self, name: str, values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - as above
        async with transaction(self._pool) as conn, conn.cursor(binary=True) as cursor:
            return await (await cursor.execute(query(name), values)).fetchall()


async def _insert_batch(conn: Connection, batch: NewBatch, now: datetime) -> date:
    values = {
        "batch_id": batch.batch_id,
        "name": batch.spec.name,
        "project": batch.project,
        "dataset": batch.dataset,
        "tags": list(batch.tags),
        "priority": batch.priority,
        "spec": pack(batch.spec).decode(),
        "max_duration": batch.max_duration,
        "max_cost_usd": batch.max_cost_usd,
        "max_tokens": batch.max_tokens,
        "run_id": batch.run_id,
        "now": now,
    }
    row = await (await conn.execute(query("insert_batch"), values)).fetchone()
    if row is None:
        raise BatchExists(batch.batch_id)
    month: date = row[0]
    return month


async def _insert_chunk(
    conn: Connection, month: date, batch_id: str, chunk: Sequence[AcceptedEvaluation]
) -> None:
    async with conn.cursor() as cursor, cursor.copy(query("copy_accepted_evaluations")) as copy:
        copy.set_types(EVALUATION_TYPES)
        for one in chunk:
            key = one.event.evaluation_id
            row = (
                key,
                batch_id,
                month,
                one.shard,
                1,
                0,
                "queued",
                one.case_id,
                one.variant,
                one.repetition,
            )
            await copy.write_row(row)
    async with conn.cursor() as cursor, cursor.copy(query("copy_events")) as copy:
        await copy.write(binary_rows(accepted_row(month, one) for one in chunk))
    await _insert_links(conn, batch_id, chunk)
    await _insert_responses(conn, month, chunk)


async def _insert_links(conn: Connection, batch_id: str, chunk: Sequence[AcceptedEvaluation]) -> None:
    linked = [(one.event.evaluation_id, one.link) for one in chunk if one.link]
    if linked:
        links = {
            "batch_id": batch_id,
            "evaluation_ids": [key for key, _ in linked],
            "follows": [link.follows for _, link in linked],
            "recalls": [to_json(link.recalls).decode() for _, link in linked],
        }
        await conn.execute(query("insert_serial_links"), links)


async def _insert_responses(conn: Connection, month: date, chunk: Sequence[AcceptedEvaluation]) -> None:
    asked = [(one.cache_key, one.event.evaluation_id) for one in chunk if one.cache_key]
    if asked:
        keys, ids = ([*column] for column in zip(*asked, strict=True))
        values = {"month": month, "cache_keys": keys, "evaluation_ids": ids}
        await conn.execute(query("insert_cache_keys"), values)


async def _add_totals(conn: Connection, batch_id: str, totals: Counter[int]) -> None:
    added = {(batch_id, shard): Progress(total=count) for shard, count in totals.items()}
    await add_progress(conn, added)


async def _chunks(
    evaluations: AsyncIterator[AcceptedEvaluation], size: int
) -> AsyncIterator[list[AcceptedEvaluation]]:
    chunk: list[AcceptedEvaluation] = []
    held = 0
    async for one in evaluations:
        chunk.append(one)
        held += len(one.body) + (LINK_BYTES * len(one.link.recalls) if one.link else 0)
        if len(chunk) == size or held >= ACCEPT_BYTES:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk


def _evaluation_state(row: Sequence[Any]) -> EvaluationState:
    key, batch_id, month, attempt, sequence, state, owner, bridged, head, epoch, published = row
    cursor = Cursor(attempt, sequence, Phase(state))
    return EvaluationState(
        EvaluationRow(key, batch_id, month, cursor, owner, bridged, head), epoch, published
    )


def _decoded(stored: Mapping[str, Mapping[EventKey, StoredEvent]]) -> dict[str, dict[EventKey, Event]]:
    return {
        key: {place: decode_body(known.body) for place, known in events.items()}
        for key, events in stored.items()
    }


def _with_bytes(row: Sequence[Any]) -> list[Any]:
    """Convert the spec of a row to bytes."""
    return [*row[:5], row[5].encode(), *row[6:]]


def _recalls(text: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((who, name) for who, name in from_json(text))
