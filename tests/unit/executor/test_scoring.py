"""Scoring of an answer: every evaluator without a score on record, and their faults."""

import asyncio

from domain.batch_spec import BatchSpec
from eventlog import payloads as p
from executor.contract import Transient
from tests.builders import CASE
from tests.unit.executor.harness import (
    ANSWER,
    TARGET,
    FakeEvaluator,
    Harness,
    hang,
    judged_by,
    raising,
    virtually,
)
from tests.unit.executor.steps import PAID_SCORE, done, give_paid_score, run_one


@virtually
async def test_a_recorded_score_is_not_paid_for_again():
    """Only the missing evaluator is called, and `completed` carries both scores."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("judge", "a")))
    await run_one(harness, p.Queued(case=CASE, answer=ANSWER, scores=(PAID_SCORE,)))
    assert harness.evaluators["judge"].judged == []
    result = await harness.last("e-1")
    assert [score.score for score in result.scores] == [0.5, 1.0]
    assert await harness.story("e-1") == "queued provisioning running responded completed"


@virtually
async def test_a_fault_of_an_evaluator_loses_neither_answer_nor_paid_scores():
    """The answer and the paid score are on record; the next attempt pays for neither."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("shaky", "judge")))
    harness.evaluators["shaky"] = FakeEvaluator(raising(Transient("network")))

    async def judge_slowly(_judged):
        await asyncio.sleep(5)
        return PAID_SCORE

    harness.evaluators["judge"] = FakeEvaluator(judge_slowly)
    await run_one(harness)
    assert await harness.story("e-1") == "queued provisioning running responded scored retrying"
    harness.evaluators["shaky"].how = give_paid_score
    await harness.queue("e-1", attempt=2)
    async with harness.executor():
        await done(harness)
    assert len(harness.target.asked) == 1
    assert len(harness.evaluators["judge"].judged) == 1
    assert isinstance(await harness.last("e-1"), p.Completed)


@virtually
async def test_an_evaluator_that_cancels_itself_does_not_cancel_the_others():
    """All of them finish, and the fault is that evaluator's."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("odd", "judge")))
    harness.evaluators["odd"] = FakeEvaluator(raising(asyncio.CancelledError()))

    async def judge_slowly(_judged):
        await asyncio.sleep(5)
        return PAID_SCORE

    harness.evaluators["judge"] = FakeEvaluator(judge_slowly)
    await run_one(harness)
    assert await harness.story("e-1") == "queued provisioning running responded scored failed"
    assert (await harness.last("e-1")).error.kind == "evaluator"


@virtually
async def test_an_evaluator_that_times_out_is_retried():
    """Its own timeout ends the call, which is a transient fault."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("a", timeout=7.0)))
    harness.evaluators["a"] = FakeEvaluator(hang)
    await run_one(harness)
    closing = await harness.last("e-1")
    assert isinstance(closing, p.Retrying)
    assert closing.error == p.ErrorDetail(kind="timeout", message="evaluator a: no judgement within 7 s")


@virtually
async def test_scores_are_kept_where_other_evaluators_fail_permanently():
    """Paid or not, they are on record and in `failed`, which names the missing; a retry runs the rest."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("a", "odd", "judge", "shaky")))
    harness.evaluators["odd"] = FakeEvaluator(raising(ValueError("no verdict")))
    harness.evaluators["judge"] = FakeEvaluator(give_paid_score)
    harness.evaluators["shaky"] = FakeEvaluator(raising(Transient("network")))
    await run_one(harness)
    assert await harness.story("e-1") == "queued provisioning running responded scored scored failed"
    closing = await harness.last("e-1")
    assert [score.evaluator for score in closing.scores] == ["a", "judge"]
    assert closing.cost_usd == PAID_SCORE.cost_usd + ANSWER.cost_usd
    assert closing.error.kind == "evaluator"
    assert closing.error.message == "evaluator odd: ValueError: no verdict; evaluator shaky: network"
    for name in ("odd", "shaky"):
        harness.evaluators[name].how = give_paid_score
    await harness.queue("e-1", attempt=2)
    async with harness.executor():
        await done(harness)
    assert isinstance(await harness.last("e-1"), p.Completed)
    assert [len(harness.evaluators[name].judged) for name in ("a", "odd", "judge", "shaky")] == [1, 2, 1, 2]
