"""The FastStream application: one batch subscriber for each shard, and the background loops.

Each subscriber reads up to `batch_size` wake-ups at a time; its handler acknowledges them after the
commit. While one shard's transaction commits, the others read and decode: four shards keep Redis, Python
and Postgres busy at once.
"""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from faststream import AckPolicy, FastStream
from faststream.redis import RedisBroker, StreamSub
from faststream.redis.subscriber.usecases import basic as fetching
from faststream.specification import AsyncAPI
from redis.exceptions import RedisError

from eventlog.keys import GROUP, wake_key
from eventlog.redis_streams import RedisEventLog
from eventlog.tasks import end
from projections.database.connection import make_pool
from projections.store.postgres import PostgresStore
from storage_worker.consumer import Consumer, WakeUp
from storage_worker.gaps import GapPolicy
from storage_worker.health import serve_health
from storage_worker.maintenance import sweep_forever, take_over_forever
from storage_worker.metrics import GAUGES, poll_forever
from storage_worker.settings import Ordering, StorageSettings
from storage_worker.storage import Storage
from storage_worker.telemetry import BatchModes

logger = logging.getLogger(__name__)

POLL_MS = 1_000
"""How long one read blocks; it returns at once when there is an entry."""
FETCH_BACKOFF_SECONDS = 1.0
"""Seconds between two reads of wake-ups while Redis is unavailable."""
SHUTDOWN_SECONDS = 5


async def raw_parser(message: Any, original: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401 - FastStream's message
    """Keep FastStream from interpreting the fields: one odd byte would fail the whole batch."""
    parsed = await original({**message, "data": []})
    parsed.raw_message = message
    return parsed


async def raw_decoder(message: Any) -> list[WakeUp]:  # noqa: ANN401 - FastStream's message
    """Return ids and fields as bytes."""
    raw = message.raw_message
    return list(zip(raw["message_ids"], raw["data"], strict=True))


def build_app(settings: StorageSettings) -> FastStream:
    """Put a storage worker together."""
    log = RedisEventLog.from_url(settings.redis_url, shards=settings.shards)
    pool = make_pool(settings.postgres_url, size=settings.shards + 4)
    storage = Storage(log, PostgresStore(pool), _gap_policy(settings), modes=BatchModes(pool))
    consumer = Consumer(log.redis, storage, shards=settings.shards, consumer=settings.consumer)
    broker = RedisBroker(
        settings.redis_url,
        apply_types=False,
        graceful_timeout=15,
        parser=raw_parser,
        decoder=raw_decoder,
        logger=logging.getLogger("storage_worker.broker"),
        log_level=logging.DEBUG,
    )
    # FastStream waits five seconds and has no setting for it: results would be delayed for as long.
    vars(fetching)["CONSUME_ERROR_BACKOFF_SECONDS"] = FETCH_BACKOFF_SECONDS
    for shard in range(settings.shards):
        _subscribe(broker, consumer, settings, shard)

    epochs: list[str] = []

    @asynccontextmanager
    async def lifespan(*_context: object) -> AsyncIterator[None]:
        await pool.open(wait=True)
        epochs.extend(await log.epochs())
        await consumer.ensure_groups()
        redelivered = await consumer.redeliver_pending(count=settings.batch_size)
        logger.info("ready", extra={"consumer": settings.consumer, "redelivered": redelivered})
        loops = (
            asyncio.create_task(sweep_forever(storage, pool, consumer, settings)),
            asyncio.create_task(take_over_forever(consumer, settings.claim_idle)),
            asyncio.create_task(serve_health(storage, consumer, app, settings)),
            asyncio.create_task(poll_forever(storage.metrics, consumer.lag, pool)),
        )
        for loop in loops:
            loop.add_done_callback(lambda ended: _exit_if_failed(ended, app))
        try:
            with GAUGES.registered(storage.metrics):
                yield
        finally:
            failure = _failure_of(loops)
            await end(loops)
            await _finish_pending(consumer, settings.batch_size)
            await pool.close()
            await log.aclose()
        if failure:
            raise LoopError(f"The storage worker stopped: {failure}") from failure

    app = FastStream(
        broker,
        logger=logging.getLogger("storage_worker.broker"),
        lifespan=lifespan,
        specification=AsyncAPI(title="Scoreline storage worker", version="1", description=__doc__ or ""),
    )

    @app.after_startup
    async def recreate_groups_after_data_loss() -> None:
        """Create the groups again if Redis lost its data before FastStream subscribed to them."""
        if await log.epochs() != epochs:
            await consumer.ensure_groups()

    return app


async def _finish_pending(consumer: Consumer, count: int) -> None:
    """Process entries that were delivered to a reader which was cancelled before it received them.

    While a server is unavailable they stay pending, and are redelivered at the next start.
    """
    with suppress(TimeoutError, RedisError, OSError):
        async with asyncio.timeout(SHUTDOWN_SECONDS):
            await consumer.redeliver_pending(count=count)


class LoopError(Exception):
    """A background loop of a storage worker has failed; its process exits with an error."""


def _failure_of(loops: "Iterable[asyncio.Task[None]]") -> BaseException | None:
    """Return what ended a loop, before the others are cancelled: a supervisor reads the exit code.

    A query of psycopg that is cancelled while it is being sent raises TypeError: no failure of its loop.
    """
    ended = (loop for loop in loops if loop.done() and not loop.cancelled())
    return next(filter(None, (loop.exception() for loop in ended)), None)


def _exit_if_failed(loop: "asyncio.Task[None]", app: FastStream) -> None:
    """Stop the whole worker when one of its loops fails: half a worker would go unnoticed."""
    if not loop.cancelled() and (error := loop.exception()):
        logger.critical("background loop failed: exiting for a restart", exc_info=error)
        app.exit()


def _subscribe(broker: RedisBroker, consumer: Consumer, settings: StorageSettings, shard: int) -> None:
    key = wake_key(shard)
    stream = StreamSub(
        key,
        group=GROUP,
        consumer=settings.consumer,
        batch=True,
        max_records=settings.batch_size,
        polling_interval=POLL_MS,
    )

    @broker.subscriber(stream=stream, ack_policy=AckPolicy.MANUAL, title=f"wake-ups of shard {shard:02}")
    async def wake(wake_ups: list[WakeUp]) -> None:
        """Evaluations have new events: read their streams, put them in order, store them."""
        await consumer.finish(key, wake_ups)


def _gap_policy(settings: StorageSettings) -> GapPolicy:
    policy = GapPolicy(settings.gap_timeout, settings.gap_warning)
    return policy.degraded() if settings.ordering is Ordering.DEGRADED else policy


def collect_garbage_rarely() -> None:
    """Run the garbage collector less often: batches make many short-lived objects and few cycles."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
