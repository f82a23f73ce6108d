"""Serial groups and cached answers, on real servers: how the answer of one evaluation reaches another."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from coordinator.submission import NewEvaluation, Recall, SerialPlace
from domain.batch_spec import BatchSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from tests.integration.coordinator.coordinating import SPEC, House, house


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url) as made:
        yield made


def chain(*recalls: Sequence[Recall]) -> list[NewEvaluation]:
    """Make a group: each evaluation but the first follows the one before it, and recalls these."""
    following = [
        NewEvaluation(p.Case(id=f"case-{n}", input=f"question {n}"), serial=SerialPlace(n - 1, tuple(left)))
        for n, left in enumerate(recalls, start=2)
    ]
    return [NewEvaluation(p.Case(id="case-1", input="question 1")), *following]


CONVERSATION = chain([Recall(1)], [Recall(1), Recall(2)])
STORY = chain([Recall(1, "hero")], [Recall(1, "hero"), Recall(2, "deed")])


async def context(here: House, batch_id: str, number: int) -> Any:
    """Return the recalled context of an evaluation."""
    [body] = await here.queues.batch_registry.contexts(batch_id, [evaluation_id(batch_id, number)])
    return json.loads(body) if body else None


async def test_a_group_runs_one_evaluation_at_a_time(here: House) -> None:
    """Each is published when the one before it has ended, and not sooner."""
    await here.submit_these("talk", CONVERSATION)
    for number in (1, 2, 3):
        await here.run_cycle(2)
        assert await here.work("talk") == [number]
    assert await here.states("talk") == ["1 completed"] * 3


async def test_a_conversation_is_passed_on(here: House) -> None:
    """Each turn gets the prompts and answers of all earlier turns."""
    await here.submit_these(
        "talk", CONVERSATION, spec=BatchSpec("talk", SPEC.targets, ("Answer: {input}",))
    )
    await here.run_cycle()
    await here.work("talk")
    await here.run_cycle()
    assert await context(here, "talk", 2) == {"stored": {}, "history": [["Answer: question 1", "4"]]}
    await here.work("talk")
    await here.run_cycle()
    assert (await context(here, "talk", 3))["history"] == [
        ["Answer: question 1", "4"],
        ["Answer: question 2", "4"],
    ]
    assert (await here.opening("talk", 3, 1)).in_group


async def test_outputs_become_fields(here: House) -> None:
    """A field has the name that the case declares."""
    await here.submit_these("story", STORY)
    for _ in range(2):
        await here.run_cycle()
        await here.work("story")
    await here.run_cycle()
    assert await context(here, "story", 3) == {"stored": {"hero": "4", "deed": "4"}, "history": []}


async def test_evaluations_that_need_a_failed_one_fail_for_that_reason(here: House) -> None:
    """Each error names the evaluation that it needed; none of them is published."""
    await here.submit_these("story", STORY)
    await here.work_until_over("story", {1: "failed"})
    assert await here.states("story") == ["1 failed", "1 failed", "1 failed"]
    assert await here.error("story", 2) == {
        "kind": "dependency",
        "message": "needs the answer to case-1, which is failed: permanent: no such model",
    }
    assert (await here.error("story", 3))["message"].startswith("needs the answer to case-1")
    assert await here.keys("eval:*story.00000002") == []


async def test_evaluations_that_only_follow_a_failed_one_run(here: House) -> None:
    """Order alone is no dependency on the answer."""
    await here.submit_these("list", chain([], []))
    await here.work_until_over("list", {1: "failed"})
    assert await here.states("list") == ["1 failed", "1 completed", "1 completed"]


async def test_the_recalled_context_is_rebuilt_after_a_loss_of_redis(here: House) -> None:
    """Redis has lost it, with everything else."""
    await here.submit_these("story", STORY)
    for _ in range(2):
        await here.run_cycle()
        await here.work("story")
    await here.run_cycle()
    await here.lose_redis()
    assert await context(here, "story", 3) is None
    await here.run_cycle()
    assert await context(here, "story", 3) == {"stored": {"hero": "4", "deed": "4"}, "history": []}
    await here.work_until_over("story")
    assert await here.states("story") == ["1 completed", "1 completed", "2 completed"]


async def test_a_crash_after_the_release_is_recovered(here: House) -> None:
    """Postgres has the release, Redis does not: the next cycle finds the opening missing and publishes."""
    await here.submit_these("story", STORY)
    await here.run_cycle()
    await here.work("story")
    await here.ledger.release([evaluation_id("story", 2)], await here.log.epochs())
    await here.work_until_over("story", {})
    assert (await here.states("story"))[0] == "1 completed"


async def test_a_retried_group_runs_in_order_again(here: House) -> None:
    """Evaluations that failed for want of another's answer wait for it, and do not run beside it."""
    await here.submit_these("story", STORY)
    await here.work_until_over("story", {1: "failed"})
    assert await here.operator.retry("story") == 3
    for number in (1, 2, 3):
        await here.run_cycle(2)
        assert await here.work("story") == [number]
    assert await here.states("story") == ["2 completed", "2 completed", "2 completed"]


async def test_a_retried_group_that_fails_again_ends_again(here: House) -> None:
    """No evaluation waits for ever."""
    await here.submit_these("story", STORY)
    await here.work_until_over("story", {1: "failed"})
    assert await here.operator.retry("story") == 3
    await here.work_until_over("story", {1: "failed"})
    assert await here.states("story") == ["2 failed", "2 failed", "2 failed"]


async def test_cancelling_ends_waiting_evaluations(here: House) -> None:
    """This includes reopened ones whose turn has not come."""
    await here.submit_these("story", STORY)
    await here.work_until_over("story", {1: "failed"})
    await here.operator.retry("story")
    await here.operator.cancel("story")
    assert await here.states("story") == ["3 cancelled", "3 cancelled", "3 cancelled"]


# -- the cache


def question(number: int, key: str | None = None) -> NewEvaluation:
    """Make an evaluation that may be answered from earlier batches."""
    return NewEvaluation(p.Case(id=f"case-{number}"), cache_key=key)


async def test_answers_are_taken_from_earlier_batches(here: House) -> None:
    """The second batch reuses the answer, records it as cached, and pays nothing."""
    await here.submit_these("first", [question(1, "a"), question(2, "b"), question(3)])
    await here.work_until_over("first", {2: "failed"})
    await here.submit_these("second", [question(1, "a"), question(2, "b"), question(3), question(4, "c")])
    known = [(await here.opening("second", number, 1)).answer for number in (1, 2, 3, 4)]
    assert known == [p.Answer("4", p.TokenUsage(7), 0.25, cached=True), None, None, None]


async def test_a_cached_answer_is_not_counted_again(here: House) -> None:
    """It is recorded as cached, and the batch costs nothing."""
    await here.submit_these("first", [question(1, "a")])
    await here.work_until_over("first")
    await here.submit_these("second", [question(1, "a")])
    await here.run_cycle()
    [delivery] = await here.takes("second")
    claimed = await here.claim("second", 1)
    answer = (await here.opening("second", 1, 1)).answer
    assert answer is not None
    claimed.attempt.record(p.Running(target="simulated"))
    response = p.Responded(answer.output, answer.usage, answer.cost_usd, answer.latency_ms, answer.cached)
    claimed.attempt.record(response)
    claimed.attempt.record(p.Completed(verdict="passed", cost_usd=answer.cost_usd, usage=answer.usage))
    await claimed.attempt.acknowledged()
    await here.store("second")
    assert delivery.task.evaluation_id == evaluation_id("second", 1)
    spent = (
        "SELECT batch_id, sum(cost_usd)::float, sum(tokens)::int FROM batch_progress GROUP BY 1 ORDER BY 1"
    )
    assert await here.ask(spent) == [("first", 0.25, 7), ("second", 0.0, 0)]
    await here.submit_these("third", [question(1, "a")])
    assert (await here.opening("third", 1, 1)).answer == answer
