"""Withdrawal of published and unclaimed evaluations from executors, in favour of provider batches."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator import decisions
from coordinator.attempts import AttemptFactory
from coordinator.provider_batches.canceller import cancellable_queues
from coordinator.provider_batches.provider import NotProcessed
from coordinator.provider_batches.requests import uses_provider_batch_in
from domain.batch_spec import BatchFallback, BatchSpec, TargetSpec, pack
from domain.ids import evaluation_id
from domain.retry_policy import MOVED, RATE_LIMITED, SHUTDOWN
from eventlog import payloads as p
from eventlog.codec import encode, make_event
from eventlog.lifecycle import Phase
from eventlog.log import EXPIRY_SECONDS, Append, AppendResult, EncodedEvent, Mode
from eventlog.timeline import Cursor
from projections.folds.change import EvaluationRow
from projections.ledger.contract import EvaluationState
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.tasks import Task
from tests.builders import START, history
from tests.unit.coordinator.provider_batches.harness import (
    NO_TIME,
    SPEC,
    B,
    Crash,
    CrashPoint,
    Harness,
    a_harness,
    with_fallback,
)

ONE_BY_ONE = replace(SPEC, batch_api=None)
MANY = 5
LEFT_ALONE = timedelta(seconds=30)
RECORDED = TargetSpec("recorded", "recorded:answers.jsonl", {"path": "answers.jsonl"})


async def published(many: int = MANY, *, page: int = 2) -> Harness:
    """Create a batch that is published to executors."""
    harness = await a_harness(many, spec=ONE_BY_ONE, page=page)
    await harness.run_cycle()
    return harness


async def take(harness: Harness) -> Task:
    """Consume a task as an executor."""
    [queue] = cancellable_queues(B, ONE_BY_ONE)
    [delivery] = await harness.queue.consume("executor", {queue: 1}, block=NO_TIME)
    await harness.queue.ack("executor", [delivery])
    return delivery.task


async def claim(harness: Harness, task: Task, *facts: p.AnyPayload) -> AppendResult:
    """Claim an attempt as an executor, and append further events to it."""
    events = [
        make_event(
            payload,
            evaluation_id=task.evaluation_id,
            batch_id=B,
            attempt=task.attempt,
            sequence=sequence,
            occurred_at=harness.now,
            source="executor",
        )
        for sequence, payload in enumerate((p.Provisioning("executor", "a nonce"), *facts), start=1)
    ]
    epoch = await harness.log.epoch(task.evaluation_id)
    records = [EncodedEvent(event, encode(event)) for event in events]
    calls = [Append(task.evaluation_id, records[:1], epoch, Mode.CLAIM)]
    calls += [Append(task.evaluation_id, records[1:], epoch)] if facts else []
    return (await harness.log.append(calls))[0].results[0]


async def move(harness: Harness, fallback: BatchFallback | None = BatchFallback.RESUBMIT) -> int:
    """Move the batch as an operator does with a resume; returns how many were withdrawn."""
    return (await harness.operator.ask_in_batches(B, fallback)).withdrawn


async def answered(harness: Harness) -> None:
    """Run storage worker, coordinator and provider until every request is answered."""
    for _ in range(10):
        await harness.store()
        await harness.run_cycle(2)
        harness.provider.finish()


async def test_unclaimed_evaluations_move_to_provider_batches() -> None:
    """A claimed one stays with its executor; no retry is used up."""
    harness = await published()
    begun = await take(harness)
    assert await claim(harness, begun) is AppendResult.OK
    moved = await harness.operator.ask_in_batches(B, BatchFallback.RESUBMIT)
    assert (moved.withdrawn, moved.to_providers, moved.to_executors) == (MANY - 1, MANY - 1, True)
    await harness.executor_registry.heartbeat(ExecutorInstance("executor", "executor"))
    await harness.store()
    await harness.run_cycle()
    assert await harness.tasks() == []
    assert (await harness.opening(2)).retries == SPEC.retries
    await answered(harness)
    assert harness.asked() == dict.fromkeys(range(2, MANY + 1), 1)
    assert harness.events(2) == [
        *("1 queued", "1 provisioning", "1 retrying"),
        *("2 queued", "2 provisioning", "2 running", "2 responded", "3 queued"),
    ]
    scored = await harness.opening(2)
    assert (scored.reason, scored.retries) == (p.OpeningReason.SCORING, SPEC.retries)


async def test_a_claimed_attempt_is_not_withdrawn_by_a_duplicate_task() -> None:
    """The claim in the log decides, not the task in the queue."""
    harness = await published(1)
    task = Task(evaluation_id(B, 1), 1)
    assert await claim(harness, task) is AppendResult.OK
    assert await move(harness) == 0
    assert await harness.log.closing([task.evaluation_id]) == [False]
    assert await harness.tasks() == []


async def test_an_evaluation_with_two_tasks_is_withdrawn_once() -> None:
    """The second claim conflicts with the first."""
    harness = await published(2)
    [queue] = cancellable_queues(B, ONE_BY_ONE)
    await harness.queue.enqueue(queue, Task(evaluation_id(B, 1), 1))
    assert await move(harness) == 2
    await answered(harness)
    assert harness.asked() == {1: 1, 2: 1}


async def test_a_repeated_move_withdraws_the_rest() -> None:
    """After a crash the spec is stored already, and the remaining tasks are still withdrawn."""
    harness = await published()
    await harness.repository.update_spec(B, pack(SPEC), by="ada", reason="provider batches")
    assert await move(harness) == MANY
    assert await move(harness) == 0


async def test_a_crash_at_any_moment_loses_and_duplicates_nothing() -> None:
    """Either the provider gets the request or an executor can claim it: never both, never neither."""
    moments = (await _dying(10**6)).crash_point.moments
    assert moments > 10
    for at in range(moments):
        harness = await _dying(at)
        by_executors = await _claimable(harness)
        await answered(harness)
        by_executors += await _claimable(harness)
        assert sorted([*harness.asked().elements(), *by_executors]) == list(range(1, MANY + 1)), at


async def _dying(at: int) -> Harness:
    harness = await published()
    harness.crash_point = CrashPoint(at)
    try:
        await move(harness)
    except Crash:
        harness.crash_point.at = None
    return harness


async def _claimable(harness: Harness) -> list[int]:
    """Consume all tasks as executors do, stalled ones included; returns what could be claimed."""
    harness.now += LEFT_ALONE
    [queue] = cancellable_queues(B, ONE_BY_ONE)
    await harness.executor_registry.heartbeat(ExecutorInstance("executor", "executor"))
    taken = await harness.queue.claim_stalled("executor", [queue], idle=LEFT_ALONE, limit=100)
    taken += await harness.queue.consume("executor", {queue: 100}, block=NO_TIME)
    await harness.queue.ack("executor", taken)
    done = p.Failed(p.ErrorDetail(kind="permanent"))
    claimed = [each.task for each in taken if await claim(harness, each.task, done) is AppendResult.OK]
    return [int(task.evaluation_id.rpartition(".")[2]) for task in claimed]


async def test_withdrawn_evaluations_return_to_executors_if_moved_back() -> None:
    """This holds before and after the next attempt is open."""
    for is_open in (False, True):
        harness = await published()
        await move(harness)
        await harness.store()
        if is_open:
            await harness.coordinator.run_cycle()
        await move(harness, None)
        await harness.run_cycle(4)  # over a minute: the submitter did not run before
        assert [task.attempt for task in await harness.tasks()] == [2] * MANY
        assert harness.provider.batches == {}


async def test_evaluations_published_before_a_restart_of_redis_move_too() -> None:
    """They can't be claimed, as when embedded servers restart between two commands."""
    harness = await published()
    harness.log.restart()
    assert await move(harness) == MANY
    await answered(harness)
    assert harness.asked() == dict.fromkeys(range(1, MANY + 1), 1)
    assert [task.attempt for task in await harness.tasks()] == [3] * MANY


async def test_evaluations_that_redis_lost_are_requested_once() -> None:
    """This holds for data loss before and after the withdrawal; no retry is charged."""
    for is_withdrawn in (False, True):
        harness = await published()
        await (move(harness) if is_withdrawn else harness.queue.delete(B, ["target-0"]))
        harness.log.lose_everything()
        await move(harness)
        await answered(harness)
        assert harness.asked() == dict.fromkeys(range(1, MANY + 1), 1)
        assert (await harness.opening(1)).retries == SPEC.retries


async def test_the_fallback_to_executors_outlives_data_loss() -> None:
    """With `sync`, an unanswered request is not submitted a second time after Redis lost data."""
    harness = await a_harness(1, spec=with_fallback(BatchFallback.SYNC))
    harness.provider.outcome = lambda _request: NotProcessed("expired")
    await answered(harness)
    assert [task.attempt for task in await harness.tasks()] == [2]
    harness.log.lose_everything()
    await answered(harness)
    assert [task.attempt for task in await harness.tasks()] == [3]
    assert harness.asked() == {1: 1}


async def test_a_stream_expires_while_it_waits_for_the_provider() -> None:
    """It exists again once there is an answer to score."""
    harness = await published(1)
    await move(harness)
    await harness.store()
    await harness.run_cycle()
    harness.now += timedelta(seconds=EXPIRY_SECONDS)
    assert await harness.log.read([evaluation_id(B, 1)], limit=1) == [[]]
    await answered(harness)
    [entries] = await harness.log.read([evaluation_id(B, 1)], limit=10)
    assert len(entries) == 1
    assert [task.attempt for task in await harness.tasks()] == [3]


async def test_an_unanswered_request_of_a_moved_evaluation_is_charged() -> None:
    """With `sync`, it falls back to an executor, and is not moved again."""
    harness = await published(1)
    harness.provider.outcome = lambda _request: NotProcessed("expired")
    assert await move(harness, BatchFallback.SYNC) == 1
    await answered(harness)
    assert harness.asked() == {1: 1}
    assert [task.attempt for task in await harness.tasks()] == [3]
    assert (await harness.opening(1)).retries == SPEC.retries - 1


@pytest.mark.parametrize(
    ("kind", "spec", "asks"),
    [
        (MOVED, SPEC, True),
        (MOVED, ONE_BY_ONE, False),
        (SHUTDOWN, SPEC, False),
        (RATE_LIMITED, SPEC, False),
        ("transient", SPEC, False),
    ],
)
def test_only_withdrawn_attempts_open_for_a_provider(kind: str, spec: BatchSpec, asks: bool) -> None:
    """All other retries stay with executors, even if the batch uses provider batches."""
    key = evaluation_id(B, 1)
    fault = p.Retrying(error=p.ErrorDetail(kind=kind), retry_at=START)
    events = history("queued provisioning retrying", evaluation_id=key, retrying=fault)
    decide = decisions.try_again(
        lambda _: AttemptFactory("coordinator", START, "epoch"),
        {key: 1},
        reason=p.OpeningReason.RETRY,
        retries=2,
        uses_provider_batch=uses_provider_batch_in(spec),
    )
    row = EvaluationRow(key, B, START.date(), Cursor(1, 2, Phase.RETRYING))
    decided = decide(EvaluationState(row, "epoch", published=True), {event.key: event for event in events})
    assert decided
    assert (decided.by_provider, decided.epoch) == (asks, "" if asks else "epoch")


def test_only_queues_of_targets_with_a_batch_api_are_emptied() -> None:
    """Queues for scoring and for other targets are left as they are."""
    both = replace(ONE_BY_ONE, targets=(RECORDED, *ONE_BY_ONE.targets))
    assert [line.rpartition("\x1f")[2] for line in cancellable_queues(B, both)] == ["target-1"]
    assert cancellable_queues(B, replace(ONE_BY_ONE, targets=(RECORDED,))) == []
