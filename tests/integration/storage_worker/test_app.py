"""The storage worker on real servers: events are stored in order and once, however they arrive."""

import os
import signal
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from redis.asyncio import Redis

from eventlog.keys import DEFAULT_SHARDS, GROUP, append_state_key, events_key, shard_of, wake_key
from eventlog.log import EXPIRY_SECONDS
from storage_worker.settings import Ordering
from tests.integration.storage_worker.wake_up_steps import (
    LIFE,
    completed,
    deliver_unseen,
    life,
    nothing_pending,
)
from tests.integration.worker import (
    WAKE_STREAMS,
    Site,
    alive,
    ask,
    free_port,
    worker,
    worker_process,
)
from tests.waiting import until

MANY = [f"evaluation-{number}" for number in range(40)]


async def all_completed(here: Site) -> bool:
    return await here.counted("completed") == len(MANY)


async def test_appended_events_are_stored(here: Site) -> None:
    """Events that writers append are soon in Postgres, counted and acknowledged."""
    async with worker(here):
        await here.append(*map(life, MANY))
        await until(lambda: all_completed(here))
        await until(lambda: nothing_pending(here))
    [counters] = await here.rows("SELECT total, completed, passed, pending, tokens FROM batch_status")
    assert counters == (40, 40, 40, 0, 40 * 8)


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_reversed_history_of_plain_xadds_is_completed(here: Site, workers: int) -> None:
    """Any client can write in any order; any number of storage workers restores the order."""
    async with AsyncExitStack() as stack:
        for number in range(workers):
            patient = dict.fromkeys(("gap_timeout", "gap_warning"), timedelta(seconds=60))
            await stack.enter_async_context(worker(here, consumer=f"worker-{number}", **patient))
        for step in range(len(LIFE.split())):
            for evaluation_id in MANY:
                await here.add_plainly([life(evaluation_id)[-1 - step]])
        await until(lambda: all_completed(here))
    verdicts = await here.rows("SELECT verdict, count(*) FROM events GROUP BY 1")
    assert verdicts == [("applied", 40 * 6)]
    assert await here.rows("SELECT * FROM gap_bridges") == []
    assert await here.rows("SELECT completed FROM batch_status") == [(40,)]


async def test_wake_ups_from_before_the_group_are_processed(here: Site) -> None:
    """Groups start at the beginning of their stream, so the first worker reads earlier wake-ups too."""
    await here.append(life("early"))
    async with worker(here):
        await until(lambda: here.state("early"))
    assert await here.state("early") == "completed"


async def hold(redis: Redis, consumer: str, evaluation_id: str) -> None:
    """Deliver all wake-ups to a consumer that does not process them."""
    for stream in WAKE_STREAMS:
        await redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
    stream = wake_key(shard_of(evaluation_id, DEFAULT_SHARDS))
    assert await redis.xreadgroup(GROUP, consumer, {stream: ">"})


async def test_a_restarted_worker_processes_its_pending_wake_ups(here: Site) -> None:
    """A worker that died with pending wake-ups processes them after its restart under the same name."""
    await here.append(life("delivered"))
    await hold(here.redis, "worker", "delivered")
    async with worker(here):
        assert await here.state("delivered") == "completed"
        # The group is reset to its beginning at every start, so the wake-up may be delivered twice.
        await until(lambda: nothing_pending(here))


async def test_a_gap_is_bridged_after_the_time_out_and_the_late_event_kept(here: Site) -> None:
    """A gap before a closing event is bridged on record; the event that arrives later changes nothing."""
    events = life("gappy")
    async with worker(here):
        await here.add_plainly([*events[:2], *events[4:]])
        await until(lambda: here.state("gappy"))
        assert await here.state("gappy") == "provisioning"
        await until(lambda: completed(here, "gappy"))
        await here.add_plainly([events[2]])
        await until(lambda: verdict_of(here, "gappy", 2))
    assert await here.verdicts("gappy") == {0: "applied", 1: "applied", 2: "late", 4: "late", 5: "applied"}
    bridges = await here.rows("SELECT closing_sequence, missing::text FROM gap_bridges")
    assert bridges == [(5, "{[2,4)}")]
    assert await here.rows("SELECT bridged FROM scorecards") == [(True,)]


async def verdict_of(here: Site, evaluation_id: str, sequence: int) -> str | None:
    return (await here.verdicts(evaluation_id)).get(sequence)


async def test_degraded_mode_does_not_wait_for_missing_events(here: Site) -> None:
    """With `degraded` ordering gaps are bridged at once."""
    patient = timedelta(minutes=5)
    async with worker(here, ordering=Ordering.DEGRADED, gap_timeout=patient):
        await here.append(life("hurried")[:1] + life("hurried")[3:])
        await until(lambda: completed(here, "hurried"))
    assert await here.rows("SELECT bridged FROM batch_status") == [(1,)]


async def test_the_stream_of_an_ended_evaluation_expires(here: Site) -> None:
    """Stream and fence expire after the end is committed; those of an open evaluation do not."""
    async with worker(here):
        await here.append(life("ended"), life("open")[:3])
        await until(lambda: completed(here, "ended"))
        await until(lambda: here.state("open"))
        await until(lambda: expiring(here, "ended"))
    assert not await expiring(here, "open")


async def expiring(here: Site, evaluation_id: str) -> bool:
    shard = shard_of(evaluation_id, DEFAULT_SHARDS)
    lives = [await here.redis.ttl(key(shard, evaluation_id)) for key in (events_key, append_state_key)]
    return all(0 < life <= EXPIRY_SECONDS for life in lives)


async def test_a_graceful_stop_leaves_no_pending_wake_ups(here: Site) -> None:
    """After SIGTERM the worker finishes the wake-ups it has read."""
    async with worker_process(here, "--no-restart", "--batch-size", "10") as started:
        await here.append(*(life(f"busy-{number}") for number in range(400)))
        await until(lambda: here.counted("completed"))
        assert await started.stop() == 0
    assert await here.pending() == 0


async def test_a_stop_processes_wake_ups_of_an_interrupted_read(here: Site) -> None:
    """A cancelled read may have been executed: its wake-ups are pending, though no worker got them."""
    async with worker(here):
        await here.add_plainly(life("unseen"), wake=False)
        await deliver_unseen(here.redis, "unseen", consumer="worker")
        assert await here.pending() == 1
    assert await here.pending() == 0
    assert await completed(here, "unseen")


async def test_the_asyncapi_document_lists_the_wake_up_streams(here: Site) -> None:
    """The document has a channel for every wake-up stream."""
    port = free_port()
    async with worker(here, health_port=port):
        _, document = await until(lambda: ask(port, "/asyncapi.json"))
    addresses = {channel["address"] for channel in document["channels"].values()}
    assert addresses == set(WAKE_STREAMS)


async def test_a_killed_child_is_restarted(here: Site) -> None:
    """Of two workers under one command, a killed one is restarted while the other continues."""
    async with worker_process(here, "--workers", "2") as started:
        await until(lambda: started.health(1), 60)
        victim = started.children()[0]
        os.kill(victim, signal.SIGKILL)
        await here.append(*map(life, MANY))
        await until(lambda: all_completed(here))
        await until(lambda: len(set(started.children()) - {victim}) == 2)
        await until(started.health, 60)
        await until(lambda: started.health(1), 60)
        left = started.children()
    assert not any(map(alive, left))
