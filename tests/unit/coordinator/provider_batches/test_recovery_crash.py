"""After a crash at any moment, every evaluation is requested, answered and paid exactly once."""

import pytest

from coordinator.provider_batches.provider import NoResponse
from eventlog import payloads as p
from tests.unit.coordinator.provider_batches.harness import COST, CrashPoint, Harness, a_harness

CASES = 5
ROUNDS = 60


async def run_with_crash(at: int | None, *, lost_responses: int = 0, create_errors: int = 0) -> Harness:
    """Run a batch from its acceptance until executors have a task for every answer."""
    harness = await a_harness(CASES)
    harness.crash_point = CrashPoint(at)
    harness.coordinator = harness.another()
    harness.provider.lost_responses = lost_responses
    harness.provider.create_errors = [NoResponse("no connection")] * create_errors
    seen: set[str] = set()
    for round_ in range(ROUNDS):
        await harness.run_cycles_with_crashes(1)
        seen |= {task.evaluation_id for task in await harness.tasks()}
        if len(seen) == CASES and not await harness.repository.list_open():
            return harness
        if round_ % 3 == 2:
            harness.provider.finish()
    raise AssertionError(
        f"tasks of {sorted(seen)}, phases {harness.phases()}, {harness.repository.provider_batches}"
    )


async def check(harness: Harness) -> None:
    """Check that every evaluation was requested, answered and paid once."""
    assert harness.phases() == ["2 queued"] * CASES
    for number in range(1, CASES + 1):
        opening = await harness.opening(number)
        assert opening.reason is p.OpeningReason.SCORING
        assert opening.answer
        assert opening.answer.output == f"question {number}"
    assert harness.asked() == dict.fromkeys(range(1, CASES + 1), 1)
    assert len(harness.provider.batches) == 2
    assert float(harness.total().cost_usd) == pytest.approx(CASES * COST)
    assert harness.total().retried == 0
    assert {
        provider_batch.state.value for provider_batch in harness.repository.provider_batches.values()
    } == {"collected"}


async def moments_of_a_run() -> int:
    harness = await run_with_crash(None)
    await check(harness)
    return harness.crash_point.moments


async def test_a_crash_at_any_moment_costs_nothing() -> None:
    """The coordinator crashes before and after every call of every port, in turn."""
    for at in range(await moments_of_a_run()):
        await check(await run_with_crash(at))


@pytest.mark.parametrize(("lost_responses", "create_errors"), [(1, 0), (2, 0), (0, 1), (1, 1)])
async def test_a_submission_without_a_response_is_not_repeated(
    lost_responses: int, create_errors: int
) -> None:
    """This holds whether the provider created the batch or not."""
    await check(await run_with_crash(None, lost_responses=lost_responses, create_errors=create_errors))


async def test_a_crash_after_a_lost_response_costs_nothing() -> None:
    """Both faults together repeat no request."""
    for at in range(0, await moments_of_a_run(), 7):
        await check(await run_with_crash(at, lost_responses=1))
