"""A storage worker for the fault matrix: the real one, in a hurry, taking notes, mortal at named points.

Its failpoints are on both sides of the commit.
"""

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvloop
from faststream.redis.subscriber.usecases import stream_subscriber
from psycopg_pool.base import AttemptWithBackoff

from eventlog.redis_streams import RedisEventLog
from projections.store import postgres
from projections.store.postgres import PostgresStore
from storage_worker import app, maintenance
from storage_worker.consumer import Consumer
from storage_worker.pass_results import PassCounts
from storage_worker.settings import StorageSettings
from storage_worker.storage import Storage
from tests.chaos.call_log import CallLog
from tests.chaos.failpoints import after, before, fuse

SOON = 0.3
"""Seconds for what takes FastStream five, and the pool one: their pauses after a server did not answer."""

BEFORE_COMMIT = ("at the commit's door", "in the open transaction")
AFTER_COMMIT = ("after the commit", "after the marks")
"""Named points, in the order of a batch's way."""


@dataclass(frozen=True, slots=True)
class Orders:
    """Configuration of a worker."""

    redis_url: str
    postgres_url: str
    name: str
    call_log: Path
    gap_timeout: float = 2.0
    claim_idle: float = 1.0
    take_over_count: int = maintenance.TAKE_OVER_COUNT
    dies: str | None = None
    """The point at which to die, and at which call of it."""
    dies_at_call: int = 1

    def reborn(self) -> "Orders":
        """Return the configuration of the next process: it dies once."""
        return replace(self, dies=None, dies_at_call=1)


def work(orders: Orders) -> None:
    """Run a storage worker until SIGTERM, or until the wanted point is reached."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    _hurry(orders)
    _take_notes(CallLog(orders.call_log))
    if orders.dies:
        _arm(orders.dies, orders.dies_at_call)
    uvloop.run(app.build_app(_settings(orders)).run())


def _settings(orders: Orders) -> StorageSettings:
    return StorageSettings(
        orders.redis_url,
        orders.postgres_url,
        orders.name,
        gap_timeout=timedelta(seconds=orders.gap_timeout),
        gap_warning=timedelta(seconds=orders.gap_timeout / 2),
        claim_idle=timedelta(seconds=orders.claim_idle),
    )


def _hurry(orders: Orders) -> None:
    """Cut the pauses that are chosen for days of running down to what a test can wait for."""
    vars(stream_subscriber)["CONSUME_ERROR_BACKOFF_SECONDS"] = SOON
    vars(app)["POLL_MS"] = 200
    hurry_the_pool()
    vars(maintenance)["TAKE_OVER_COUNT"] = orders.take_over_count


def hurry_the_pool() -> None:
    """Let connections to Postgres be tried again soon."""
    setattr(AttemptWithBackoff, "INITIAL_DELAY", SOON)  # noqa: B010 - read by the pool alone


def _take_notes(call_log: CallLog) -> None:
    """Write down how often the seldom paths are taken."""
    after(Consumer, "claim_stalled", lambda taken: _note_take_over(call_log, taken))
    after(Consumer, "redeliver_pending", lambda drained: call_log.note("redelivered", drained))
    count, log_outage = PassCounts.count, Storage._log_outage

    def counted(tally: PassCounts, resolutions: Any, lost: set[str]) -> None:
        before = tally.duplicates
        count(tally, resolutions, lost)
        call_log.note("read twice", tally.duplicates - before)
        call_log.note("lost race", len(lost))

    def noted(storage: Storage, error: Exception) -> None:
        call_log.note(type(error).__name__)
        log_outage(storage, error)

    setattr(PassCounts, "count", counted)  # noqa: B010 - a method, replaced on purpose
    setattr(Storage, "_log_outage", noted)  # noqa: B010 - as above


def _note_take_over(call_log: CallLog, taken: int) -> None:
    call_log.note("taken over", taken)
    call_log.note(f"take-over of {taken}", 1 if taken else 0)


def _arm(point: str, at_call: int) -> None:
    die = fuse(at_call)
    match point:
        case "at the commit's door":
            before(PostgresStore, "commit", die)
        case "in the open transaction":
            after(postgres, "commit_changes", die)
        case "after the commit":
            after(PostgresStore, "commit", die)
        case "after the marks":
            after(RedisEventLog, "settle", die)
        case _:
            raise ValueError(point)
