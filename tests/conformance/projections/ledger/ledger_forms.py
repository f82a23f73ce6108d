"""The implementations of the ledger, each with its tables, and small batches to store in them."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from domain.batch_spec import BatchSpec, TargetSpec
from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.codec import encode, make_event
from eventlog.events import Event
from eventlog.keys import DEFAULT_SHARDS, shard_of
from eventlog.timeline import replay
from projections.folds.change import fold
from projections.folds.progress import Progress
from projections.ledger.batch import Batch, NewBatch
from projections.ledger.contract import (
    AcceptedEvaluation,
    AttemptOpening,
    Decide,
    EvaluationState,
    Ledger,
    OpenedAttempt,
    SerialLink,
)
from projections.ledger.memory import MemoryLedger
from projections.ledger.postgres import PostgresLedger
from projections.store.contract import ProjectionStore
from projections.store.memory import MemoryStore
from projections.store.postgres import PostgresStore
from tests.builders import CASE, arrive

SPEC = BatchSpec("batch", (TargetSpec("simulated", "simulated"),))
NOW = datetime(2026, 3, 14, 15, 9, tzinfo=UTC)
EPOCHS = [f"{shard:02}-1" for shard in range(DEFAULT_SHARDS)]
LATER = [f"{shard:02}-2" for shard in range(DEFAULT_SHARDS)]
B = "batch"


class LedgerForm(Protocol):
    """One implementation under test."""

    @property
    def ledger(self) -> Ledger:
        """The ledger itself."""
        ...

    @property
    def tables(self) -> ProjectionStore:
        """The tables it shares with storage workers."""
        ...

    async def wait(self, seconds: float) -> None:
        """Make every evaluation older by this time."""
        ...

    async def time(self) -> datetime:
        """Return the database's time."""
        ...

    async def operations(self, batch_id: str) -> list[tuple[str, str, str]]:
        """Return the recorded operations of a batch in order, each with author and reason."""
        ...

    async def total(self) -> Progress:
        """Return the sum of all counters."""
        ...


class MemoryLedgerForm:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.tables = MemoryStore(lambda: self.now)
        self.ledger = MemoryLedger(self.tables, shards=DEFAULT_SHARDS, now=utc_now)

    async def wait(self, seconds: float) -> None:
        self.now += seconds

    async def time(self) -> datetime:
        return utc_now()

    async def operations(self, batch_id: str) -> list[tuple[str, str, str]]:
        events = (each for each in self.ledger.batches.events if each.batch_id == batch_id)
        return [(each.type, each.by, each.reason) for each in events]

    async def total(self) -> Progress:
        total = Progress()
        for each in self.tables.progress.values():
            total += each
        return total


class PostgresLedgerForm:
    def __init__(self, pool: AsyncConnectionPool, conn: AsyncConnection[Any]) -> None:
        self.tables = PostgresStore(pool)
        self.ledger = PostgresLedger(pool, shards=DEFAULT_SHARDS)
        self.conn = conn

    async def wait(self, seconds: float) -> None:
        await self.conn.execute(
            "UPDATE evaluations SET updated_at = updated_at - make_interval(secs => %s)", [seconds]
        )

    async def time(self) -> datetime:
        return utc_now()

    async def operations(self, batch_id: str) -> list[tuple[str, str, str]]:
        statement = "SELECT type, by_whom, reason FROM batch_events WHERE batch_id = %s ORDER BY number"
        return await (await self.conn.execute(statement, [batch_id])).fetchall()

    async def total(self) -> Progress:
        statement = "SELECT total, failed, timed_out, cancelled, retried FROM batch_progress"
        total = Progress()
        for all_, failed, timed_out, cancelled, retried in await (
            await self.conn.execute(statement)
        ).fetchall():
            total += Progress(
                total=all_, failed=failed, timed_out=timed_out, cancelled=cancelled, retried=retried
            )
        return total


def key(number: int, batch_id: str = B) -> str:
    """Return the id of an evaluation."""
    return f"{batch_id}.{number:08}"


def opening_event(number: int, batch_id: str = B) -> Event:
    return make_event(
        p.Queued(case=CASE),
        evaluation_id=key(number, batch_id),
        batch_id=batch_id,
        attempt=1,
        sequence=0,
        occurred_at=NOW,
        source="user",
    )


def accepted(
    number: int, batch_id: str = B, *, cache_key: str | None = None, link: SerialLink | None = None
) -> AcceptedEvaluation:
    """Make an evaluation as it is accepted."""
    event = opening_event(number, batch_id)
    shard = shard_of(event.evaluation_id, DEFAULT_SHARDS)
    return AcceptedEvaluation(event, encode(event), shard, f"case-{number}", 0, 1, cache_key, link)


async def one_by_one(evaluations: Iterable[AcceptedEvaluation]) -> AsyncIterator[AcceptedEvaluation]:
    for one in evaluations:
        yield one


async def accept(
    form: LedgerForm,
    *evaluations: AcceptedEvaluation,
    batch_id: str = B,
    max_duration: timedelta | None = None,
    now: datetime = NOW,
) -> Batch:
    """Accept a batch, and return it."""
    batch = NewBatch(batch_id, SPEC, priority=3, max_duration=max_duration)
    count = await form.ledger.accept(batch, one_by_one(evaluations), now=now)
    assert count == len(evaluations)
    return await batch_of(form, batch_id)


async def batch_of(form: LedgerForm, batch_id: str = B) -> Batch:
    """Read a batch."""
    batch = await form.ledger.batch(batch_id)
    assert batch
    return batch


async def publish(form: LedgerForm, last: int, *, size: int = 1, epochs: Sequence[str] = EPOCHS) -> Batch:
    """Open a window up to an evaluation."""
    batch = await batch_of(form)
    assert await form.ledger.open_window(batch, last_id=key(last), size=size, epochs=epochs)
    return await batch_of(form)


async def state_of(form: LedgerForm, number: int) -> EvaluationState:
    """Read the state of one evaluation."""
    [found] = await form.ledger.evaluation_states([key(number)])
    return found


async def store(form: LedgerForm, number: int, *facts: p.AnyPayload, occurred_at: datetime = NOW) -> None:
    """Apply events after the current ones, as the storage worker does."""
    [row] = (await form.tables.rows([key(number)])).values()
    events = [
        make_event(
            fact,
            evaluation_id=row.evaluation_id,
            batch_id=row.batch_id,
            attempt=row.cursor.attempt,
            sequence=sequence,
            occurred_at=occurred_at,
            source="executor-1",
        )
        for sequence, fact in enumerate(facts, start=row.cursor.sequence + 1)
    ]
    walked = replay(row.cursor, arrive(events))
    change = fold(row, shard_of(row.evaluation_id, DEFAULT_SHARDS), walked, exists=True)
    assert (await form.tables.commit([change])).lost == set()


def opens(*payloads: p.AnyPayload, epoch: str = "01-1") -> Decide:
    """Decide to open the next attempt with these payloads, whatever the state."""

    def decide(state: EvaluationState, _logged: object) -> AttemptOpening:
        row = state.row
        events = [
            make_event(
                payload,
                evaluation_id=row.evaluation_id,
                batch_id=row.batch_id,
                attempt=row.cursor.attempt + 1,
                sequence=sequence,
                occurred_at=NOW,
                source="coordinator",
            )
            for sequence, payload in enumerate(payloads)
        ]
        return AttemptOpening(events, epoch)

    return decide


async def open_next(
    form: LedgerForm, number: int, *payloads: p.AnyPayload, epoch: str = "01-1"
) -> OpenedAttempt:
    """Open the next attempt of one evaluation."""
    [opened] = await form.ledger.open_attempts([key(number)], opens(*payloads, epoch=epoch))
    return opened


def raising(
    evaluations: Iterable[AcceptedEvaluation], error: Exception
) -> Callable[[], AsyncIterator[AcceptedEvaluation]]:
    """Yield some evaluations, then raise."""

    async def source() -> AsyncIterator[AcceptedEvaluation]:
        for one in evaluations:
            yield one
        raise error

    return source
