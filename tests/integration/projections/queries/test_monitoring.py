"""Counts of batches for metrics: idle time, stuck evaluations, and a limited number of batches."""

from datetime import timedelta

from coordinator.metrics_collector import BEYOND, NAMED, STUCK_LIMIT
from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from projections.queries.monitoring import BatchMonitor
from tests.integration.coordinator.coordinating import House, house

SPEC = BatchSpec(
    "a batch",
    (TargetSpec("simulated", "simulated"),),
    timeout=60,
    # They are called at the same time, so an attempt may take 90 s.
    evaluators=(EvaluatorSpec("exact", "exact", timeout=30), EvaluatorSpec("exact", "again", timeout=30)),
)
ALLOWED = timedelta(seconds=90) + BEYOND


async def stuck(here: House) -> int:
    """Return the number of stuck evaluations."""
    return await BatchMonitor(here.pool).stuck(beyond=BEYOND, limit=STUCK_LIMIT)


async def test_a_batch_is_idle_since_its_last_ending_or_resume(redis_url, postgres_url):
    """A paused batch is not idle."""
    an_hour_ago = "now() - interval '1 hour'"
    async with house(redis_url, postgres_url) as here:
        await here.submit("nightly", 2)
        await here.run_cycle()

        async def idle() -> float:
            [batch] = await BatchMonitor(here.pool).batches(limit=NAMED)
            return batch.idle_seconds

        await here.alter(f"UPDATE batches SET accepted_at = {an_hour_ago}")
        await here.conn.execute(f"UPDATE batch_progress SET last_ended_at = {an_hour_ago}".encode())
        assert 3_600 <= await idle() < 3_700
        await here.operator.pause("nightly")
        assert await idle() == 0
        await here.operator.resume("nightly")
        assert await idle() < 60
        await here.alter(f"UPDATE batch_events SET at = {an_hour_ago} WHERE type = 'running'")
        assert await idle() >= 3_600
        [delivery, *_] = await here.takes("nightly")
        await here.claim("nightly", 1)
        await here.store("nightly")
        assert await idle() >= 3_600  # it made progress, and did not end
        await House._live(here.owned[delivery.task.evaluation_id], "completed")
        await here.store("nightly")
        assert await idle() < 60


async def test_the_number_of_batches_with_a_series_is_limited(redis_url, postgres_url):
    """The oldest have one each; the others are added up."""
    async with house(redis_url, postgres_url) as here:
        for number in range(4):
            await here.submit(f"batch-{number}", number + 1)
        found = await BatchMonitor(here.pool).batches(limit=2)
        assert [(batch.batch_id, batch.running, batch.progress.pending) for batch in found] == [
            ("batch-0", 1, 1),
            ("batch-1", 1, 2),
            (None, 2, 7),
        ]


async def test_a_claimed_evaluation_is_stuck_after_its_time(redis_url, postgres_url):
    """It is stuck after its time-outs plus 15 minutes; a queued one is not, while others end."""
    async with house(redis_url, postgres_url) as here:
        await here.submit("nightly", 3, spec=SPEC)
        await here.run_cycle()
        await here.takes("nightly")
        await here.claim("nightly", 1)
        await here.store("nightly")
        aged = "UPDATE evaluations SET updated_at = now() - %s WHERE evaluation_id = %s"
        for number in (1, 2):
            await here.alter(aged, ALLOWED + timedelta(minutes=1), f"nightly.0000000{number}")
        await here.alter("UPDATE batches SET accepted_at = now() - interval '1 day'")
        assert await stuck(here) == 1
        await here.alter(aged, ALLOWED + timedelta(seconds=10), "nightly.00000001")
        assert await stuck(here) == 1
        await here.conn.execute(b"UPDATE batch_progress SET last_ended_at = now() - interval '1 day'")
        assert await stuck(here) == 2
        await here.alter(aged, ALLOWED - timedelta(minutes=1), "nightly.00000001")
        assert await stuck(here) == 1
        await here.operator.pause("nightly")
        assert await stuck(here) == 0


async def test_an_unpublished_evaluation_is_not_stuck(redis_url, postgres_url):
    """Beyond the window evaluations wait without a limit."""
    async with house(redis_url, postgres_url, window=1, page_size=1) as here:
        await here.submit("nightly", 3, spec=SPEC)
        await here.run_cycle()
        for statement in (
            b"UPDATE evaluations SET updated_at = now() - interval '1 day'",
            b"UPDATE batch_progress SET last_ended_at = now() - interval '1 day'",
            b"UPDATE batches SET accepted_at = now() - interval '1 day'",
        ):
            await here.conn.execute(statement)
        assert await stuck(here) == 1
