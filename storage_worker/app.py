"""The FastStream application: one batch subscriber a shard, and the loops beside them.

Each subscriber reads up to `batch_size` wake-ups at a time; its handler acknowledges them after the
commit. While one shard's transaction commits, the others read and decode:
four shards keep Redis, Python and Postgres busy at once without a pipeline of our own.
"""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
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
from storage_worker.consumer import Consumer
from storage_worker.gaps import Patience
from storage_worker.health import serve_health
from storage_worker.modes import Modes
from storage_worker.observing import observe_forever
from storage_worker.picture import shown
from storage_worker.settings import Ordering, StorageSettings
from storage_worker.storage import Storage
from storage_worker.sweep import sweep_forever
from storage_worker.woken import WakeUp

logger = logging.getLogger(__name__)

POLL_MS = 1_000
"""How long one read waits for news; it returns at once when there is any."""
FETCH_BACKOFF_SECONDS = 1.0
"""Seconds between two reads of wake-ups while Redis is away."""
LET_GO_SECONDS = 5
TAKE_OVER_COUNT = 500
"""Wake-ups taken over from dead workers at a time: a storm of them must not drown what is new."""


async def raw_parser(message: Any, original: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401 - FastStream's message
    """Keep FastStream from interpreting the fields: one odd byte would fail the whole batch."""
    parsed = await original({**message, "data": []})
    parsed.raw_message = message
    return parsed


async def raw_decoder(message: Any) -> list[WakeUp]:  # noqa: ANN401 - FastStream's message
    """Hand out ids and fields as bytes."""
    raw = message.raw_message
    return list(zip(raw["message_ids"], raw["data"], strict=True))


def build_app(settings: StorageSettings) -> FastStream:
    """Put a storage worker together."""
    log = RedisEventLog.from_url(settings.redis_url, shards=settings.shards)
    pool = make_pool(settings.postgres_url, size=settings.shards + 4)
    storage = Storage(log, PostgresStore(pool), _patience(settings), modes=Modes(pool))
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
    # Five seconds in FastStream, which are not to be set: results would stand still for as long.
    vars(fetching)["CONSUME_ERROR_BACKOFF_SECONDS"] = FETCH_BACKOFF_SECONDS
    for shard in range(settings.shards):
        _subscribe(broker, consumer, settings, shard)

    epochs: list[str] = []

    @asynccontextmanager
    async def lifespan(*_context: object) -> AsyncIterator[None]:
        await pool.open(wait=True)
        epochs.extend(await log.epochs())
        await consumer.ensure_groups()
        drained = await consumer.drain_own(count=settings.batch_size)
        logger.info("ready", extra={"consumer": settings.consumer, "drained": drained})
        loops = (
            asyncio.create_task(sweep_forever(storage, pool, consumer, settings)),
            asyncio.create_task(_take_over_forever(consumer, settings.claim_idle)),
            asyncio.create_task(serve_health(storage, consumer, app, settings)),
            asyncio.create_task(observe_forever(storage.picture, consumer, pool)),
        )
        for loop in loops:
            loop.add_done_callback(lambda ended: _leave_if_broken(ended, app))
        try:
            with shown(storage.picture):
                yield
        finally:
            await end(loops)
            await _let_go(consumer, settings.batch_size)
            await pool.close()
            await log.aclose()

    app = FastStream(
        broker,
        logger=logging.getLogger("storage_worker.broker"),
        lifespan=lifespan,
        specification=AsyncAPI(title="Scoreline storage worker", version="1", description=__doc__ or ""),
    )

    @app.after_startup
    async def begin_again_if_redis_was_lost() -> None:
        """Between our groups and FastStream's look at them Redis may have forgotten ours."""
        if await log.epochs() != epochs:
            await consumer.ensure_groups()

    return app


async def _let_go(consumer: Consumer, count: int) -> None:
    """Finish what was handed out to a reader that was stopped before it could be told of it.

    What can't be finished now, because a server is away, is finished at the next start.
    """
    with suppress(TimeoutError, RedisError, OSError):
        async with asyncio.timeout(LET_GO_SECONDS):
            await consumer.drain_own(count=count)


def _leave_if_broken(loop: "asyncio.Task[None]", app: FastStream) -> None:
    """End the whole worker when one of its loops breaks: half a worker would go unnoticed."""
    if not loop.cancelled() and (error := loop.exception()):
        logger.critical("a loop of the worker broke: leaving, to be started again", exc_info=error)
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
        """An evaluation's stream has news: read it, order it, store it."""
        await consumer.finish(key, wake_ups)


def _patience(settings: StorageSettings) -> Patience:
    patience = Patience(settings.gap_timeout, settings.gap_warning)
    return patience.hurried() if settings.ordering is Ordering.DEGRADED else patience


async def _take_over_forever(consumer: Consumer, idle: timedelta) -> None:
    while True:
        await asyncio.sleep(idle.total_seconds() / 3)
        try:
            await consumer.take_over(idle_ms=int(idle.total_seconds() * 1000), count=TAKE_OVER_COUNT)
        except (RedisError, OSError) as error:
            logger.debug("could not look for abandoned wake-ups", extra={"error": str(error)})


def collect_garbage_rarely() -> None:
    """Let the collector look only now and then: batches make many short-lived objects and few cycles."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
