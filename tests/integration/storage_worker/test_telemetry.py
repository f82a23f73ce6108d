"""The metrics of a storage worker on real servers."""

import pytest

from domain.batch_spec import BatchSpec, TargetSpec
from eventlog.keys import DEFAULT_SHARDS, GROUP, wake_key
from projections.store.postgres import PostgresStore
from storage_worker.consumer import Consumer
from storage_worker.metrics import GAUGES, POSTGRES, REDIS, poll
from storage_worker.storage import Storage
from storage_worker.telemetry import BatchModes
from tests.integration.coordinator.coordinating import House, house
from tests.storage_world import GAP_POLICY
from tests.telemetry import measuring

MANY = 100


def consumer_of(here: House) -> Consumer:
    """Make a worker that looks modes up, and its consumer of wake-ups."""
    storage = Storage(here.log, PostgresStore(here.pool), GAP_POLICY, modes=BatchModes(here.pool))
    here.storage = storage
    return Consumer(here.log.redis, storage, shards=DEFAULT_SHARDS, consumer="worker")


async def test_the_backlog_is_the_number_of_unacknowledged_wake_ups(redis_url, postgres_url):
    """Unread and pending wake-ups count; when all is stored the backlog is zero and both servers are up."""
    async with house(redis_url, postgres_url) as here:
        consumer = consumer_of(here)
        metrics = here.storage.metrics
        await here.submit("nightly", 3)
        await here.run_cycle()
        await consumer.ensure_groups()
        await here.work("nightly")
        with GAUGES.registered(metrics), measuring() as measured:
            await poll(metrics, consumer.lag, here.pool)
            backlog = measured.look().gauge("eval_storage_backlog")
            assert backlog
            assert measured.gauge("eval_storage_lag_seconds") == 0
            for shard in range(DEFAULT_SHARDS):
                await here.log.redis.xreadgroup(GROUP, "worker", {wake_key(shard): ">"})
            await consumer.redeliver_pending(count=MANY)
            lag = measured.look().gauge("eval_storage_lag_seconds")
            await poll(metrics, consumer.lag, here.pool)
        assert lag is not None
        assert 0 < lag < 60
        assert measured.gauge("eval_storage_backlog") == 0
        assert [measured.gauge("eval_dependency_up", name) for name in (REDIS, POSTGRES)] == [1, 1]


async def test_a_backlog_without_a_lag_from_redis_is_still_counted(redis_url, postgres_url):
    """Redis returns a null `lag` after an unread entry was deleted."""
    async with house(redis_url, postgres_url) as here:
        consumer = consumer_of(here)
        await consumer.ensure_groups()
        keys = [await here.log.redis.xadd(wake_key(0), {"id": f"e{n}"}) for n in range(4)]
        await here.log.redis.xreadgroup(GROUP, "worker", {wake_key(0): ">"}, count=1)
        await here.log.redis.xdel(wake_key(0), keys[2])
        [group] = await here.log.redis.xinfo_groups(wake_key(0))
        assert group["lag"] is None
        assert await consumer.lag() == {"unread": 2, "in_hand": 1}
        await here.log.redis.delete(wake_key(0))


@pytest.mark.parametrize(
    ("types", "mode"),
    [(("recorded",), "recorded"), (("recorded", "recorded"), "recorded"), (("python", "http"), "mixed")],
)
async def test_an_evaluation_has_the_mode_of_its_batchs_target(redis_url, postgres_url, types, mode):
    """Several types of target in one batch give the mode `mixed`."""
    async with house(redis_url, postgres_url) as here:
        consumer_of(here)
        spec = BatchSpec("a batch", tuple(TargetSpec(each, f"{each} {n}") for n, each in enumerate(types)))
        await here.submit("nightly", 2, spec=spec)
        with measuring() as measured:
            await here.work_until_over("nightly", {2: "failed"})
        assert measured.count("eval_test_duration_ms", mode) == 2
        assert (measured["eval_batch_tests_passed_total"], measured["eval_batch_tests_failed_total"]) == (
            1,
            1,
        )
        assert measured["eval_tokens_total"] == 7
        assert measured["eval_cost_usd_total"] == pytest.approx(0.25)


async def test_evaluations_that_were_not_submitted_are_external(redis_url, postgres_url):
    """Their batch has no spec that names a target, and an unknown batch has no mode."""
    async with house(redis_url, postgres_url) as here:
        await PostgresStore(here.pool).months(["theirs"])
        assert await BatchModes(here.pool).of({"theirs", "unknown"}) == {"theirs": "external"}
