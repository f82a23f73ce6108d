"""The attempt pipeline, on a queue, a registry and a log in memory."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.batch_spec import BatchSpec, TargetSpec
from eventlog import payloads as p
from executor.contract import Permanent, RateLimited, TargetReply, Transient
from taskqueue.tasks import Task
from tests.builders import BATCH, CASE
from tests.unit.executor.harness import (
    ANSWER,
    TARGET,
    FakeEvaluator,
    Harness,
    hang,
    judged_by,
    virtually,
)
from tests.unit.executor.steps import done, give_paid_score, run_one

# What becomes of a task.


@virtually
async def test_a_task_passes_every_step_of_the_pipeline():
    """Claimed, run, recorded, scored, closed, acked; `completed` aggregates it."""
    harness = Harness(BatchSpec("batch", (TARGET,), ("{input} = ?",), evaluators=judged_by("a", "b")))
    harness.evaluators["b"] = FakeEvaluator(give_paid_score)
    await run_one(harness)
    assert await harness.story("e-1") == "queued provisioning running responded scored completed"
    result = await harness.last("e-1")
    assert (result.verdict, result.score, result.cost_usd) == ("passed", 0.75, 0.75)
    assert result.usage == p.TokenUsage(input_tokens=9, output_tokens=1)
    assert [score.evaluator for score in result.scores] == ["a", "b"]
    assert harness.target.asked[0].prompt == "2 + 2 = ?"
    assert harness.evaluators["a"].judged[0].fields["output"] == "4"


@virtually
async def test_a_hundred_tasks_share_four_slots():
    """Never more tasks are active than there are slots, and all of them complete."""
    harness, at_once, most = Harness(), 0, 0

    async def count(_question):
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.1)
        at_once -= 1
        return TargetReply(ANSWER)

    harness.target.how = count
    await harness.register()
    for number in range(100):
        await harness.queue(f"e-{number}")
    async with harness.executor():
        await done(harness)
    assert most == 4
    stories = {await harness.story(f"e-{number}") for number in range(100)}
    assert stories == {"queued provisioning running responded completed"}


@virtually
async def test_a_recorded_answer_is_not_requested_again():
    """An earlier attempt paid for it: it is scored, and its cost is not counted again."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("a")))
    await harness.register()
    earlier: list[p.AnyPayload] = [
        p.Queued(case=CASE),
        p.Provisioning(executor="dead", nonce="1"),
        p.Running(target="fake"),
        p.Responded(output="4", cost_usd=0.5),
    ]
    for sequence, payload in enumerate(earlier):
        await harness.write(payload, "e-1", attempt=1, sequence=sequence)
    await harness.queue("e-1", attempt=2)
    async with harness.executor():
        await done(harness)
    assert harness.target.asked == []
    answered: Any = (await harness.events("e-1"))[-2].data
    result = await harness.last("e-1")
    assert answered == p.Responded(output="4", cost_usd=0.5, cached=True)
    assert (result.verdict, result.cost_usd) == ("passed", 0.5)


@virtually
async def test_a_failed_case_is_a_verdict_and_no_fault():
    """Not passing is a result."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("a")))
    await run_one(harness, p.Queued(case=p.Case(id="c", expected="5")))
    assert (await harness.last("e-1")).verdict == "failed"


# Faults.


@virtually
async def test_a_time_out_without_retries_left_settles_the_evaluation():
    """It is `timed_out`, and its task a dead letter."""
    harness = Harness(BatchSpec("batch", (TARGET,), timeout=30.0))
    harness.target.how = hang
    await run_one(harness, p.Queued(case=CASE, retries=0))
    closing = await harness.last("e-1")
    assert (closing.limit, closing.seconds) == ("task", 30.0)
    assert await harness.is_drained()


@virtually
async def test_a_fault_of_a_target_closes_only_its_own_attempt():
    """Each fault closes as the table of `outcome` has it, and the executor goes on."""
    harness = Harness()
    faults = {
        "limited": RateLimited(retry_after=timedelta(seconds=9)),
        "shaky": Transient("network"),
        "hopeless": Permanent("refused", "no such model"),
        "odd": ZeroDivisionError("by zero"),
        "leaving": SystemExit(3),
        "cancels itself": asyncio.CancelledError(),
        "fine": None,
    }

    async def ask(question):
        if error := faults[question.evaluation_id]:
            raise error
        return TargetReply(ANSWER)

    harness.target.how = ask
    await harness.register()
    for name in faults:
        await harness.queue(name)
    async with harness.executor():
        await done(harness)
    ends = {name: await harness.last(name) for name in faults}
    assert ends["limited"].error.kind == "rate_limited"
    assert ends["shaky"].error == p.ErrorDetail(kind="network")
    assert ends["hopeless"].error == p.ErrorDetail(kind="refused", message="no such model")
    assert ends["odd"].error == p.ErrorDetail(kind="error", message="ZeroDivisionError: by zero")
    assert ends["leaving"].error.message == "SystemExit: 3"
    assert isinstance(ends["cancels itself"], p.Failed)
    assert isinstance(ends["fine"], p.Completed)
    assert await harness.is_drained()


@virtually
async def test_an_invalid_evaluation_fails_before_any_call():
    """Unknown field, unknown variant, unknown target, unknown evaluator, unreadable spec."""
    missing = Harness(BatchSpec("batch", (TARGET,), ("{nowhere}",)))
    variant = Harness()
    target = Harness(BatchSpec("batch", (TargetSpec("unheard-of", "x"),)))
    unknown = replace(judged_by("a")[0], type="unheard-of")
    evaluator = Harness(BatchSpec("batch", (TARGET,), evaluators=(unknown,)))
    for harness in (missing, target, evaluator):
        await run_one(harness)
    await run_one(variant, p.Queued(case=CASE, variant=7))
    for harness in (missing, variant, target, evaluator):
        closing = await harness.last("e-1")
        assert isinstance(closing, p.Failed)
        assert closing.error.kind == "invalid"
        assert harness.target.asked == []
        assert await harness.story("e-1") == "queued provisioning failed"


@virtually
async def test_an_unreadable_spec_fails_its_evaluations():
    """They fail with the reason instead of waiting for an executor that can read it."""
    harness = Harness()
    await harness.register()
    harness.batch_registry._entries[BATCH] = (
        harness.batch_registry._entries[BATCH][0],
        b'{"from": "the future"}',
    )
    await harness.queue("e-1")
    async with harness.executor():
        await done(harness)
    assert "spec" in (await harness.last("e-1")).error.message


@virtually
async def test_reasons_are_truncated_where_the_closing_event_is_too_large():
    """Long reasons do not keep an evaluation from completing."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("a", "b", "c")))

    async def talk(_judged):
        return p.Score(evaluator="a", score=1.0, reason="x" * 500_000)

    harness.evaluators = {name: FakeEvaluator(talk) for name in "abc"}
    await run_one(harness)
    assert [len(score.reason) for score in (await harness.last("e-1")).scores] == [1_000] * 3


# Who owns an attempt.


@virtually
async def test_a_rejected_claim_acks_the_task_without_a_call():
    """The attempt has another owner: the target is not called."""
    harness = Harness()
    await harness.register()
    await harness.queue("e-1")
    await harness.write(p.Provisioning(executor="other", nonce="1"), "e-1", attempt=1, sequence=1)
    async with harness.executor():
        await done(harness)
    assert harness.target.asked == []
    assert await harness.story("e-1") == "queued provisioning"


@pytest.mark.parametrize("seconds", [0, 5])
@virtually
async def test_an_answer_of_a_fenced_attempt_is_kept(seconds):
    """The attempt was fenced during the call; its cost is counted all the same."""
    harness = Harness()

    async def be_overtaken(_question):
        await harness.fence("e-1")
        await asyncio.sleep(seconds)  # long enough for the executor to learn that the attempt is lost
        return TargetReply(ANSWER)

    harness.target.how = be_overtaken
    await run_one(harness)
    [*_, fence, late] = await harness.events("e-1")
    assert (fence.type, late.type, late.attempt) == ("cancelled", "responded", 1)


@virtually
async def test_a_task_delivered_twice_runs_once():
    """Also by the same executor at the same time: each delivery has its own nonce."""
    harness = Harness()
    await harness.register()
    await harness.queue("e-1")
    await harness.tasks.enqueue(BATCH, Task("e-1", 1))
    async with harness.executor():
        await done(harness)
    assert len(harness.target.asked) == 1
    assert await harness.story("e-1") == "queued provisioning running responded completed"


@virtually
async def test_an_invalid_task_does_not_keep_the_others_from_being_claimed():
    """One bad task stops only itself."""
    harness = Harness()
    await harness.register()
    await harness.tasks.enqueue(BATCH, Task("bad\x00name", 1))
    await harness.queue("e-1")
    await harness.queue("e-2")
    async with harness.executor():
        await done(harness)
    assert isinstance(await harness.last("e-1"), p.Completed)
    assert isinstance(await harness.last("e-2"), p.Completed)
    assert await harness.is_drained()
