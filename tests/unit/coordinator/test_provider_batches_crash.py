"""Whenever the coordinator dies, every evaluation is asked once, answered once, and paid for once."""

import pytest

from coordinator.provider_batches.provider import NoResponse
from eventlog import payloads as p
from tests.unit.coordinator.provider_batch_stage import COST, Fate, Stage, a_stage

CASES = 5
ROUNDS = 60


async def live_and_die(at: int | None, *, mute: int = 0, deaf: int = 0) -> Stage:
    """Live through a batch, from its acceptance until every answer is in the hands of executors."""
    stage = await a_stage(CASES)
    stage.fate = Fate(at)
    stage.coordinator = stage.another()
    stage.provider.mute = mute
    stage.provider.deaf = [NoResponse("nobody is there")] * deaf
    told: set[str] = set()
    for round_ in range(ROUNDS):
        await stage.live(1)
        told |= {task.evaluation_id for task in await stage.tasks()}
        if len(told) == CASES and not await stage.repository.list_open():
            return stage
        if round_ % 3 == 2:
            stage.provider.finish()
    raise AssertionError(
        f"told of {sorted(told)}, standing {stage.standing()}, {stage.repository.provider_batches}"
    )


async def check(stage: Stage) -> None:
    """See that all was asked and answered once, and paid for once."""
    assert stage.standing() == ["2 queued"] * CASES
    for number in range(1, CASES + 1):
        opening = await stage.opening(number)
        assert opening.reason is p.OpeningReason.SCORING
        assert opening.answer
        assert opening.answer.output == f"question {number}"
    assert stage.asked() == dict.fromkeys(range(1, CASES + 1), 1)
    assert len(stage.provider.batches) == 2
    assert float(stage.total().cost_usd) == pytest.approx(CASES * COST)
    assert stage.total().retried == 0
    assert {
        provider_batch.state.value for provider_batch in stage.repository.provider_batches.values()
    } == {"collected"}


async def moments_of_a_life() -> int:
    stage = await live_and_die(None)
    await check(stage)
    return stage.fate.moments


async def test_a_crash_at_any_moment_costs_nothing() -> None:
    """Before and after every call of every port, in turn."""
    for at in range(await moments_of_a_life()):
        await check(await live_and_die(at))


@pytest.mark.parametrize(("mute", "deaf"), [(1, 0), (2, 0), (0, 1), (1, 1)])
async def test_a_submission_without_a_reply_is_not_made_twice(mute: int, deaf: int) -> None:
    """Whether the provider had heard it or not."""
    await check(await live_and_die(None, mute=mute, deaf=deaf))


async def test_a_crash_beside_a_lost_reply_costs_nothing() -> None:
    """Two mishaps are no worse than one."""
    for at in range(0, await moments_of_a_life(), 7):
        await check(await live_and_die(at, mute=1))
