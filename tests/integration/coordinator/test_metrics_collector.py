"""Metrics of a coordinator on real servers, while batches run and when they are over."""

from decimal import Decimal

from coordinator.metrics import GAUGES
from tests.integration.coordinator.coordinating import House, house, observer_of
from tests.telemetry import Measured, measuring


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
