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
    SETTINGS,
    TARGET,
    FakeEvaluator,
    Harness,
    hang,
    judged_by,
    raising,
    virtually,
)
from tests.waiting import until

PAID_SCORE = p.Score(
    evaluator="judge", score=0.5, passed=True, usage=p.TokenUsage(input_tokens=2), cost_usd=0.25
)
A_DAY = 86_400


async def done(harness: Harness, *batches: str) -> None:
    """Wait until every task is acked."""

    async def all_drained() -> bool:
        return all([await harness.is_drained(batch) for batch in batches or (BATCH,)])

    await until(all_drained, timeout=A_DAY)


async def run_one(harness: Harness, opening: p.Queued | None = None) -> None:
    await harness.register()
    await harness.queue("e-1", opening=opening)
    async with harness.executor():
        await done(harness)


async def give_paid_score(_judged: object) -> p.Score:
    return PAID_SCORE


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
async def test_each_variant_and_repetition_has_its_own_request():
    """Prompt and target are those of the variant; the request carries the repetition."""
    spec = BatchSpec("batch", (TARGET, TargetSpec("fake", "other")), ("a {input}", "b {id}"))
    harness = Harness(spec)
    await run_one(harness, p.Queued(case=CASE, variant=3, repetition=5))
    assert (harness.target.asked[0].prompt, harness.target.asked[0].repetition) == ("b case-1", 5)
    running: Any = (await harness.events("e-1"))[2].data
    assert running.target == "other"


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
async def test_a_recorded_score_is_not_paid_for_again():
    """Only the missing evaluator is called, and `completed` carries both scores."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("judge", "a")))
    await run_one(harness, p.Queued(case=CASE, answer=ANSWER, scores=(PAID_SCORE,)))
    assert harness.evaluators["judge"].judged == []
    result = await harness.last("e-1")
    assert [score.score for score in result.scores] == [0.5, 1.0]
    assert await harness.story("e-1") == "queued provisioning running responded completed"


@virtually
async def test_a_failed_case_is_a_verdict_and_no_fault():
    """Not passing is a result."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("a")))
    await run_one(harness, p.Queued(case=p.Case(id="c", expected="5")))
    assert (await harness.last("e-1")).verdict == "failed"


# Faults.


@virtually
async def test_a_target_that_times_out_is_retried():
    """The batch's timeout cancels the call and frees the slot."""
    harness = Harness(BatchSpec("batch", (TARGET,), timeout=30.0))
    harness.target.how = hang
    await run_one(harness, p.Queued(case=CASE, retries=1))
    closing = await harness.last("e-1")
    assert isinstance(closing, p.Retrying)
    assert closing.error.kind == "timeout"
    assert harness.target.cancelled == 1


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


# Groups.


@virtually
async def test_the_context_of_a_serial_group_fills_the_prompt():
    """Stored outputs are fields, earlier turns are history."""
    harness = Harness(BatchSpec("batch", (TARGET,), ("{plan}: {input}",)))
    left = b'{"stored": {"plan": "add"}, "history": [["hello", "hi"]]}'
    await harness.batch_registry.put_contexts(BATCH, {"e-1": left})
    await run_one(harness, p.Queued(case=CASE, in_group=True))
    assert harness.target.asked[0].prompt == "add: 2 + 2"
    assert harness.target.asked[0].history == (("hello", "hi"),)


@virtually
async def test_a_missing_context_is_retried():
    """It may have been lost with Redis; the coordinator writes it again."""
    harness = Harness()
    await run_one(harness, p.Queued(case=CASE, in_group=True))
    closing = await harness.last("e-1")
    assert isinstance(closing, p.Retrying)
    assert closing.error.kind == "context"


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


@virtually
async def test_a_task_of_a_dead_consumer_is_taken_over():
    """Its consumer died before the claim."""
    harness = Harness()
    await harness.register()
    await harness.queue("e-1")
    await harness.tasks.consume("dead", {BATCH: 1}, block=timedelta(0))
    async with harness.executor():
        await done(harness)
    assert isinstance(await harness.last("e-1"), p.Completed)
    assert harness.loop.time() > 30


@virtually
async def test_a_long_task_is_not_taken_over():
    """Each heartbeat extends it, and the executor stays registered."""
    harness = Harness(BatchSpec("batch", (TARGET,), timeout=1_000.0))

    async def take_long(_question):
        await asyncio.sleep(600)
        return TargetReply(ANSWER)

    harness.target.how = take_long
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor() as executor:
        await asyncio.sleep(300)
        idle = await harness.tasks.claim_stalled("other", [BATCH], idle=timedelta(seconds=30), limit=9)
        assert idle == []
        assert await harness.executor_registry.filter_live([executor.instance_id])
        [present] = await harness.executor_registry.live()
        assert (present.busy, present.slots) == (1, SETTINGS.slots)
        await done(harness)
    assert len(harness.target.asked) == 1


@virtually
async def test_an_idle_executor_confirms_a_new_epoch_within_a_second_or_two():
    """Its heartbeat carries the confirmation at once, not with the next interval."""
    harness = Harness(BatchSpec("batch", (TARGET,)))
    await harness.register()
    async with harness.executor():
        await asyncio.sleep(6.5)
        harness.log.restart()
        await asyncio.sleep(1.5)
        [present] = await harness.executor_registry.live()
        assert list(present.epochs) == await harness.log.epochs()
