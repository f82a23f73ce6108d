"""Metrics of a coordinator on real servers, while batches run and when they are over."""

import asyncio
from datetime import timedelta
from decimal import Decimal

from coordinator import app
from coordinator.metrics import GAUGES, CoordinatorMetrics
from coordinator.metrics_collector import BEYOND, NAMED, STUCK_LIMIT, MetricsCollector
from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from projections.queries.monitoring import BatchMonitor
from tests.integration.coordinator.coordinating import House, house
from tests.telemetry import Measured, measuring
from tests.waiting import until

SPEC = BatchSpec(
    "a batch",
    (TargetSpec("simulated", "simulated"),),
    timeout=60,
    # They are called at the same time, so an attempt may take 90 s.
    evaluators=(EvaluatorSpec("exact", "exact", timeout=30), EvaluatorSpec("exact", "again", timeout=30)),
)
ALLOWED = timedelta(seconds=90) + BEYOND


def observer_of(here: House) -> MetricsCollector:
    """Build a coordinator that collects metrics."""
    return MetricsCollector(CoordinatorMetrics(), BatchMonitor(here.pool), here.queues)


async def stuck(here: House) -> int:
    """Return the number of stuck evaluations."""
    return await BatchMonitor(here.pool).stuck(beyond=BEYOND, limit=STUCK_LIMIT)


async def look(here: House, measured: Measured) -> Measured:
    """Refresh the gauges as the leader, and collect."""
    observer = observer_of(here)
    with GAUGES.registered(observer.view), observer.view.leading():
        await observer.observe()
        return measured.look()


async def test_batches_are_counted_when_they_start_and_when_they_are_over(redis_url, postgres_url):
    """Each is counted once by its outcome: completed, failed, and cancelled by another process."""
    async with house(redis_url, postgres_url) as here:
        with measuring() as measured:
            await here.submit("good", 2)
            await here.work_until_over("good")
            await here.submit("poor", 2)
            await here.work_until_over("poor", {1: "failed"})
            await here.submit("bad", 1)
            await here.work_until_over("bad", {1: "failed"})
            await here.submit("off", 3)
            await here.run_cycle()
            await here.operator.cancel("off")
            await here.run_cycle(3)
        assert measured["eval_distributed_batch_started_total", "false", "simulated"] == 4
        over = "eval_distributed_batch_completed_total"
        for status in ("success", "partial", "failed", "cancelled"):
            assert measured[over, "simulated", status] == 1
        assert measured.count("eval_batch_duration_seconds", "simulated") == 4
        assert measured.count("eval_coordinator_round_ms") > 4
        # Two completed and two failed at executors; three were ended by the coordinator.
        assert measured["eval_batch_tests_total"] == 8
        assert measured["eval_batch_tests_failed_total"] == 5


async def test_batches_that_have_just_finished_have_series(redis_url, postgres_url):
    """Each has its outcome and its duration; one that finished long ago has no series any more."""
    async with house(redis_url, postgres_url) as here:
        for name, hows in {"good": {}, "poor": {1: "failed"}, "old": {}}.items():
            await here.submit(name, 2)
            await here.work_until_over(name, hows)
        async with here.pool.connection() as conn:
            await conn.execute(
                "UPDATE batches SET finished_at = now() - interval '11 minutes' WHERE batch_id = 'old'"
            )
            [[now]] = await (await conn.execute("SELECT extract(epoch FROM now())::float8")).fetchall()
        await look(here, measured := Measured())
        finished = "eval_batch_finished_timestamp_seconds"
        for name, status in {"good": "success", "poor": "partial"}.items():
            assert now - 60 < measured.gauge(finished, name, status) <= now
        assert measured.gauge(finished, "old", "success") is None


async def test_attempts_after_the_first_are_counted_by_their_reason(redis_url, postgres_url):
    """One was lost, one had a transient error, and one was retried by an operator."""
    async with house(redis_url, postgres_url) as here:
        await here.submit("nightly", 3)
        with measuring() as measured:
            await here.run_cycle()
            await here.work("nightly", {1: "dies", 2: "retrying", 3: "failed"})
            await here.work_until_over("nightly")
            await here.operator.retry("nightly")
            await here.work_until_over("nightly")
        reasons = [measured["eval_coordinator_opened_total", why] for why in ("lost", "retry", "operator")]
        assert reasons == [1, 1, 1]


async def test_a_running_batch_has_its_state_in_gauges(redis_url, postgres_url):
    """States of evaluations, queue depth, cost, budget and live executors are exported."""
    async with house(redis_url, postgres_url) as here:
        await here.submit("nightly", 5, max_cost_usd=Decimal(1), max_tokens=140)
        await here.run_cycle()
        *_, first, second = await here.takes("nightly")
        for delivery in (first, second):
            await here.queues.tasks.nack("executors", delivery)
        gauge = (measured := Measured()).gauge
        await look(here, measured)
        queue = [gauge(f"eval_queue_{which}_tasks", "nightly") for which in ("pending", "owned")]
        assert queue == [2, 3]
        await here.claim("nightly", 1)
        await House._live(here.owned["nightly.00000001"], "completed")
        await here.claim("nightly", 2)
        await House._live(here.owned["nightly.00000002"], "failed")
        await here.store("nightly")
        await look(here, measured)
        states = ("pending", "completed", "failed", "timed_out", "cancelled")
        assert [gauge("eval_batch_evaluations", "nightly", state) for state in states] == [3, 1, 1, 0, 0]
        assert [gauge("eval_active_batches", state) for state in ("running", "paused")] == [1, 0]
        assert (gauge("eval_batch_passed", "nightly"), gauge("eval_queue_dlq_size", "nightly")) == (None, 1)
        assert gauge("eval_batch_cost_usd", "nightly") == 0.25
        assert gauge("eval_batch_budget_spent_ratio", "nightly") == 0.25
        assert gauge("eval_workers_present") == 2
        assert (gauge("eval_stuck_evaluations"), gauge("eval_batch_api_open")) == (0, 0)
        assert [gauge("eval_dependency_up", name) for name in ("redis", "postgres")] == [1, 1]


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


async def test_only_the_leader_exports_gauges_of_batches(redis_url, postgres_url):
    """The standby reports itself as one until the leader is gone, which then exports nothing."""
    async with house(redis_url, postgres_url) as here:
        await here.submit("nightly", 1)
        stops, observers = [asyncio.Event(), asyncio.Event()], [observer_of(here), observer_of(here)]

        async def run(number: int) -> None:
            with GAUGES.registered(observers[number].view):
                await app._until_stopped(here.another(), observers[number], here.pool, stops[number])

        def seen(number: int) -> tuple[bool, bool]:
            view = observers[number].view
            return view.is_leading, view.overview is not None

        first = asyncio.create_task(run(0))
        await until(lambda: seen(0) == (True, True))
        second = asyncio.create_task(run(1))
        await until(lambda: observers[1].view.dependencies.up)
        assert seen(1) == (False, False)
        stops[0].set()
        await first
        assert seen(0) == (False, False)
        await until(lambda: seen(1) == (True, True))
        stops[1].set()
        await second
        for observer in observers:
            assert observer.view.dependencies.up == {"redis": 1, "postgres": 1}
