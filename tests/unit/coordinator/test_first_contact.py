"""The automatic pause of a batch because an endpoint that it needs has never answered."""

from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, cast

import pytest

from coordinator.first_contact import FORGET_AFTER, GRACE, LOOK_EVERY, FirstContactCheck
from domain.batch_spec import BatchSpec, TargetSpec, pack
from projections.ledger.batch import Batch
from projections.ledger.contract import Ledger, UnreachableEvaluation

SPEC = BatchSpec("b", (TargetSpec("http", "one"), TargetSpec("http", "two")), fail_fast_after=5)
BATCH = Batch("b", date(2026, 1, 1), "", "default", 1, pack(SPEC), "running", "", 0, "", None, False)
REFUSED = "http://x: connection refused; it has not answered yet"


@dataclass
class Looks:
    """The checks of one batch by a coordinator, and the faults that the ledger has at each."""

    now: float = 100.0
    waiting: list[UnreachableEvaluation] = field(default_factory=list)
    batch: Batch = BATCH

    def __post_init__(self) -> None:
        self.contacts = FirstContactCheck(cast("Ledger", self), lambda: self.now)

    async def unreached(self, _batch: Batch, **_wanted: Any) -> list[UnreachableEvaluation]:
        return self.waiting

    async def look(self, *waiting: tuple[str, int], after: float = LOOK_EVERY) -> str | None:
        self.now += after
        self.waiting = [UnreachableEvaluation(key, attempt, 1, REFUSED) for key, attempt in waiting]
        return await self.contacts.reason_to_pause(self.batch)


async def test_lasting_faults_pause_the_batch_with_target_and_address():
    """The batch pauses only after the endpoint has had time to start."""
    looks = Looks()
    assert await looks.look() is None
    assert await looks.look(("a", 1)) is None
    assert await looks.look(("a", 2), after=GRACE - 1) is None
    assert await looks.look(("a", 3)) == (
        f"target two: {REFUSED}. Check the URL, and that the server is running"
    )


async def test_fail_fast_counts_unreachable_evaluations():
    """Each evaluation counts once; without fail fast, only time counts."""
    for after, is_paused in ((5, True), (6, False), (0, False)):
        spec = replace(SPEC, fail_fast_after=after)
        looks = Looks(batch=replace(BATCH, spec=pack(spec)))
        await looks.look()
        assert await looks.look(*((key, 1) for key in "abcd")) is None
        assert await looks.look(*((key, 2) for key in "abcd")) is None
        assert (await looks.look(("e", 1)) is not None) == is_paused


async def test_faults_from_before_a_pause_do_not_count_after_a_resume():
    """The operator resumed it because URL or server was fixed."""
    looks = Looks()
    old = [(key, 1) for key in "abcdefg"]
    assert await looks.look(*old) is None
    assert await looks.look(*old, after=2 * GRACE) is None
    looks.contacts.release("b")
    assert await looks.look(*old) is None
    assert await looks.look(*old, after=2 * GRACE) is None


@pytest.mark.parametrize("silence", [FORGET_AFTER + 1, 10 * FORGET_AFTER])
async def test_old_faults_expire(silence):
    """A fault of an hour ago and one now are not an hour of faults."""
    looks = Looks()
    await looks.look()
    await looks.look(("a", 1))
    await looks.look(after=silence)
    assert await looks.look(("a", 2)) is None


async def test_the_ledger_is_queried_every_other_second():
    """More frequent cycles cause no further query."""
    looks = Looks()
    await looks.look()
    assert await looks.look(*((key, 1) for key in "abcdefg"), after=LOOK_EVERY / 4) is None
    assert await looks.look(*((key, 1) for key in "abcdefg")) is not None


async def test_a_judge_is_named_instead_of_the_target():
    """The reason names the evaluator that its fault names."""
    looks = Looks()
    await looks.look()
    looks.waiting = [UnreachableEvaluation("a", 1, 0, f"evaluator polite: unreachable: {REFUSED}")] * 2
    await looks.contacts.reason_to_pause(BATCH)
    looks.now += LOOK_EVERY
    await looks.contacts.reason_to_pause(BATCH)
    looks.now += GRACE
    reason = await looks.contacts.reason_to_pause(BATCH)
    assert reason is not None
    assert reason.startswith("evaluator polite: unreachable: http://x: connection refused")
