"""Recovery of submissions that the provider ended with an error of its own."""

from datetime import timedelta

from coordinator.provider_batches.provider import NoResponse
from tests.unit.coordinator.provider_batches.batch_results import answered
from tests.unit.coordinator.provider_batches.harness import A_ROUND, Harness, a_harness

ENDED = NoResponse("Anthropic replied with 500", has_ended=True)
LOST = NoResponse("the connection was lost")
MARGIN = timedelta(seconds=20)


async def a_harness_with(*errors: NoResponse) -> Harness:
    """Create a harness whose next submissions fail, and run the cycle of the first one."""
    harness = await a_harness(3, ended_margin=MARGIN)
    harness.provider.create_errors = list(errors)
    await harness.run_cycle()
    harness.now -= A_ROUND
    return harness


async def cycle_after(harness: Harness, seconds: float) -> None:
    """Run one cycle so many seconds later, without advancing the time after it."""
    harness.now += timedelta(seconds=seconds)
    await harness.run_cycle()
    harness.now -= A_ROUND


async def test_a_submission_that_the_provider_ended_is_repeated_when_the_list_is_complete() -> None:
    """Not before: the list may lag. The time-out of a submission need not pass."""
    harness = await a_harness_with(ENDED)
    await cycle_after(harness, 0)
    await cycle_after(harness, 19.9)
    assert harness.provider.batches == {}
    await cycle_after(harness, 0.1)
    assert len(harness.provider.batches) == 1
    await answered(harness)
    assert (harness.phases(), len(harness.provider.batches)) == (["2 queued"] * 3, 1)


async def test_a_batch_that_was_created_despite_an_error_is_found_by_listing() -> None:
    """It appears in the list late, and is not submitted a second time."""
    harness = await a_harness_with(ENDED)
    elsewhere = await a_harness_with()
    await cycle_after(harness, 15)
    assert harness.provider.batches == {}
    created = next(iter(elsewhere.provider.batches.values()))
    [provider_batch] = harness.repository.provider_batches.values()
    for request in created.requests:
        request["custom_id"] = f"{provider_batch.id}-{request['custom_id'].rpartition('-')[2]}"
    created.created_at = harness.now
    harness.provider.batches[created.provider_id] = created
    await cycle_after(harness, 10)
    await answered(harness)
    assert (harness.phases(), len(harness.provider.batches)) == (["2 queued"] * 3, 1)


async def test_after_a_crash_the_end_of_a_request_is_unknown() -> None:
    """Another coordinator waits for the time-out of the submission, and its margin."""
    harness = await a_harness_with(ENDED)
    harness.coordinator = harness.another()
    await cycle_after(harness, 119)
    assert harness.provider.batches == {}
    await cycle_after(harness, 1)
    assert len(harness.provider.batches) == 1


async def test_the_end_of_an_earlier_submission_does_not_count_for_a_later_one() -> None:
    """The repeated submission may still be in progress."""
    harness = await a_harness_with(ENDED, LOST)
    await cycle_after(harness, 20)
    await cycle_after(harness, 100)
    assert harness.provider.batches == {}
    await cycle_after(harness, 20)
    assert len(harness.provider.batches) == 1
