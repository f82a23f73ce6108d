"""An executor that sees a batch fail over and over takes none of it until the coordinator has decided."""

from dataclasses import replace

from domain.batch_spec import BatchSpec, TargetSpec
from eventlog import payloads as p
from executor.contract import Permanent
from executor.failure_streak import HOLD, FailureStreaks
from tests.unit.executor.stage import SETTINGS, Stage, raising, virtually
from tests.waiting import until

FAILED = p.Failed(p.ErrorDetail("error", "wrong key"))
COMPLETED = p.Completed(verdict="passed")
SLOTS = 4


def observed(*closings: object, attempt: int = 1, limit: int = 3) -> FailureStreaks:
    streaks = FailureStreaks()
    for each in closings:
        streaks.observe("b", each, attempt=attempt, limit=limit, now=0.0)  # type: ignore[arg-type]
    return streaks


def test_failures_in_a_row_hold_a_batch_for_a_moment() -> None:
    """Only at the first attempt, without another end among them, and where fail-fast is on."""
    assert observed(FAILED, FAILED, FAILED).held(HOLD - 0.1) == {"b"}
    assert not observed(FAILED, FAILED, FAILED).held(HOLD)
    assert not observed(FAILED, FAILED, COMPLETED, FAILED).held(0.0)
    assert observed(FAILED, FAILED, None, FAILED).held(0.0)
    assert not observed(FAILED, FAILED, FAILED, attempt=2).held(0.0)
    assert not observed(*[FAILED] * 50, limit=0).held(0.0)


def test_a_batch_that_does_not_run_is_counted_anew() -> None:
    """A pause ends both the row and the hold."""
    streaks = observed(FAILED, FAILED, FAILED, FAILED)
    streaks.forget_all_but([])
    assert not streaks.held(0.0)


@virtually
async def test_an_executor_alone_starts_few_more_than_fail_fast_allows() -> None:
    """Without a coordinator's decision it stops at the limit and what its slots have in flight."""
    spec = BatchSpec("batch", (TargetSpec("fake", "model"),), fail_fast_after=10)
    stage = Stage(spec, replace(SETTINGS, slots=SLOTS))
    stage.target.how = raising(Permanent("error", "wrong key"))
    await stage.register()
    for n in range(100):
        await stage.queue(f"e{n}")
    begun = stage.loop.time()
    async with stage.executor():
        await until(lambda: stage.loop.time() > begun + HOLD - 0.2)
        assert 10 <= len(stage.target.asked) <= 10 + 2 * SLOTS
        await until(stage.is_drained, 60)
    assert len(stage.target.asked) == 100
