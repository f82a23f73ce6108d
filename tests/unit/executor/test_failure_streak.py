"""Consecutive failures of a batch: the executor holds it until the coordinator has decided."""

from dataclasses import replace

from domain.batch_spec import BatchSpec, TargetSpec
from eventlog import payloads as p
from executor.contract import Permanent
from executor.failure_streak import HOLD, FailureStreaks
from tests.unit.executor.harness import SETTINGS, Harness, raising, virtually
from tests.waiting import until

FAILED = p.Failed(p.ErrorDetail("error", "wrong key"))
COMPLETED = p.Completed(verdict="passed")
SLOTS = 4


def observed(*closings: object, attempt: int = 1, limit: int = 3) -> FailureStreaks:
    streaks = FailureStreaks()
    for each in closings:
        streaks.observe("b", each, attempt=attempt, limit=limit, now=0.0)  # type: ignore[arg-type]
    return streaks


def test_consecutive_failures_hold_a_batch() -> None:
    """Only first attempts count, without another outcome in between, and where fail-fast is on."""
    assert observed(FAILED, FAILED, FAILED).held(HOLD - 0.1) == {"b"}
    assert not observed(FAILED, FAILED, FAILED).held(HOLD)
    assert not observed(FAILED, FAILED, COMPLETED, FAILED).held(0.0)
    assert observed(FAILED, FAILED, None, FAILED).held(0.0)
    assert not observed(FAILED, FAILED, FAILED, attempt=2).held(0.0)
    assert not observed(*[FAILED] * 50, limit=0).held(0.0)


def test_a_paused_batch_starts_from_zero() -> None:
    """A pause resets both streak and hold."""
    streaks = observed(FAILED, FAILED, FAILED, FAILED)
    streaks.forget_all_but([])
    assert not streaks.held(0.0)


@virtually
async def test_without_a_coordinator_starts_are_bounded_by_the_limit_and_the_slots() -> None:
    """The executor stops at the limit plus the attempts in flight."""
    spec = BatchSpec("batch", (TargetSpec("fake", "model"),), fail_fast_after=10)
    harness = Harness(spec, replace(SETTINGS, slots=SLOTS))
    harness.target.how = raising(Permanent("error", "wrong key"))
    await harness.register()
    for n in range(100):
        await harness.queue(f"e{n}")
    begun = harness.loop.time()
    async with harness.executor():
        await until(lambda: harness.loop.time() > begun + HOLD - 0.2)
        assert 10 <= len(harness.target.asked) <= 10 + 2 * SLOTS
        await until(harness.is_drained, 60)
    assert len(harness.target.asked) == 100
