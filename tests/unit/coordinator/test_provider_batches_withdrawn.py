"""What executors were told of and have not begun goes to provider batches, if somebody wants it so."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator import decisions
from coordinator.attempts import AttemptFactory
from coordinator.provider_batches.canceller import cancellable_queues
from coordinator.provider_batches.provider import NotProcessed
from coordinator.provider_batches.requests import is_asked_in
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
from tests.unit.coordinator.provider_batch_stage import (
    NO_TIME,
    SPEC,
    B,
    Crash,
    Fate,
    Stage,
    a_stage,
    with_fallback,
)

ONE_BY_ONE = replace(SPEC, batch_api=None)
MANY = 5
LEFT_ALONE = timedelta(seconds=30)
RECORDED = TargetSpec("recorded", "recorded:answers.jsonl", {"path": "answers.jsonl"})


async def told(many: int = MANY, *, page: int = 2) -> Stage:
    """Have executors told of a batch."""
    stage = await a_stage(many, spec=ONE_BY_ONE, page=page)
    await stage.run_cycle()
    return stage


async def take(stage: Stage) -> Task:
    """Be an executor that takes a task."""
    [line] = cancellable_queues(B, ONE_BY_ONE)
    [delivery] = await stage.queue.consume("executor", {line: 1}, block=NO_TIME)
    await stage.queue.ack("executor", [delivery])
    return delivery.task


async def claim(stage: Stage, task: Task, *facts: p.AnyPayload) -> AppendResult:
    """Be an executor that claims an attempt, and perhaps goes on with it."""
    events = [
        make_event(
            payload,
            evaluation_id=task.evaluation_id,
            batch_id=B,
            attempt=task.attempt,
            sequence=sequence,
            occurred_at=stage.now,
            source="executor",
        )
        for sequence, payload in enumerate((p.Provisioning("executor", "a nonce"), *facts), start=1)
    ]
    epoch = await stage.log.epoch(task.evaluation_id)
    records = [EncodedEvent(event, encode(event)) for event in events]
    calls = [Append(task.evaluation_id, records[:1], epoch, Mode.CLAIM)]
    calls += [Append(task.evaluation_id, records[1:], epoch)] if facts else []
    return (await stage.log.append(calls))[0].results[0]


async def move(stage: Stage, fallback: BatchFallback | None = BatchFallback.RESUBMIT) -> int:
    """Be whoever resumes; returns how many were withdrawn."""
    return (await stage.operator.ask_in_batches(B, fallback)).withdrawn


async def answered(stage: Stage) -> None:
    """Let the storage worker, the coordinator and the provider do their part, again and again."""
    for _ in range(10):
        await stage.store()
        await stage.run_cycle(2)
        stage.provider.finish()


async def test_what_nobody_has_begun_is_answered_by_provider_batches() -> None:
    """And what an executor has in hand ends there; no retry is used up."""
    stage = await told()
    begun = await take(stage)
    assert await claim(stage, begun) is AppendResult.OK
    moved = await stage.operator.ask_in_batches(B, BatchFallback.RESUBMIT)
    assert (moved.withdrawn, moved.to_providers, moved.to_executors) == (MANY - 1, MANY - 1, True)
    await stage.executor_registry.heartbeat(ExecutorInstance("executor", "executor"))
    await stage.store()
    await stage.run_cycle()
    assert await stage.tasks() == []
    assert (await stage.opening(2)).retries == SPEC.retries
    await answered(stage)
    assert stage.asked() == dict.fromkeys(range(2, MANY + 1), 1)
    assert stage.story(2) == [
        *("1 queued", "1 provisioning", "1 retrying"),
        *("2 queued", "2 provisioning", "2 running", "2 responded", "3 queued"),
    ]
    scored = await stage.opening(2)
    assert (scored.reason, scored.retries) == (p.OpeningReason.SCORING, SPEC.retries)


async def test_what_an_executor_has_claimed_is_not_ended_by_a_task_that_came_twice() -> None:
    """A task that is still in the queue says nothing: the log does."""
    stage = await told(1)
    task = Task(evaluation_id(B, 1), 1)
    assert await claim(stage, task) is AppendResult.OK
    assert await move(stage) == 0
    assert await stage.log.closing([task.evaluation_id]) == [False]
    assert await stage.tasks() == []


async def test_each_is_withdrawn_once_though_its_task_is_there_twice() -> None:
    """The second claim meets the first."""
    stage = await told(2)
    [line] = cancellable_queues(B, ONE_BY_ONE)
    await stage.queue.enqueue(line, Task(evaluation_id(B, 1), 1))
    assert await move(stage) == 2
    await answered(stage)
    assert stage.asked() == {1: 1, 2: 1}


async def test_whoever_asks_again_withdraws_the_rest() -> None:
    """The spec says so already: somebody died before, and that is no reason to leave what is there."""
    stage = await told()
    await stage.repository.update_spec(B, pack(SPEC), by="ada", reason="provider batches")
    assert await move(stage) == MANY
    assert await move(stage) == 0


async def test_a_crash_at_any_moment_loses_nothing_and_asks_nobody_twice() -> None:
    """Each evaluation is asked of the provider, or an executor can claim it: never both, never neither."""
    moments = (await _dying(10**6)).fate.moments
    assert moments > 10
    for at in range(moments):
        stage = await _dying(at)
        by_executors = await _claimable(stage)
        await answered(stage)
        by_executors += await _claimable(stage)
        assert sorted([*stage.asked().elements(), *by_executors]) == list(range(1, MANY + 1)), at


async def _dying(at: int) -> Stage:
    stage = await told()
    stage.fate = Fate(at)
    try:
        await move(stage)
    except Crash:
        stage.fate.at = None
    return stage


async def _claimable(stage: Stage) -> list[int]:
    """Take all there is, as executors do, from the dead as well; returns what could be claimed."""
    stage.now += LEFT_ALONE
    [line] = cancellable_queues(B, ONE_BY_ONE)
    await stage.executor_registry.heartbeat(ExecutorInstance("executor", "executor"))
    taken = await stage.queue.claim_stalled("executor", [line], idle=LEFT_ALONE, limit=100)
    taken += await stage.queue.consume("executor", {line: 100}, block=NO_TIME)
    await stage.queue.ack("executor", taken)
    done = p.Failed(p.ErrorDetail(kind="permanent"))
    claimed = [each.task for each in taken if await claim(stage, each.task, done) is AppendResult.OK]
    return [int(task.evaluation_id.rpartition(".")[2]) for task in claimed]


async def test_what_was_withdrawn_goes_back_if_minds_are_changed() -> None:
    """Before the next attempt is open, and after."""
    for is_open in (False, True):
        stage = await told()
        await move(stage)
        await stage.store()
        if is_open:
            await stage.coordinator.run_cycle()
        await move(stage, None)
        await stage.run_cycle(4)  # over a minute: nobody saw in between that it was to be asked
        assert [task.attempt for task in await stage.tasks()] == [2] * MANY
        assert stage.provider.batches == {}


async def test_what_was_told_before_redis_started_again_is_moved_too() -> None:
    """Nobody can claim it: as when embedded servers stop with the last command, and start with the next."""
    stage = await told()
    stage.log.restart()
    assert await move(stage) == MANY
    await answered(stage)
    assert stage.asked() == dict.fromkeys(range(1, MANY + 1), 1)
    assert [task.attempt for task in await stage.tasks()] == [3] * MANY


async def test_what_redis_has_forgotten_is_asked_once_all_the_same() -> None:
    """Before it was withdrawn, or after; nothing is charged."""
    for is_withdrawn in (False, True):
        stage = await told()
        await (move(stage) if is_withdrawn else stage.queue.delete(B, ["target-0"]))
        stage.log.lose_everything()
        await move(stage)
        await answered(stage)
        assert stage.asked() == dict.fromkeys(range(1, MANY + 1), 1)
        assert (await stage.opening(1)).retries == SPEC.retries


async def test_what_the_provider_did_not_answer_stays_with_executors_when_redis_is_lost() -> None:
    """With `sync`: it is not asked a second time."""
    stage = await a_stage(1, spec=with_fallback(BatchFallback.SYNC))
    stage.provider.outcome = lambda _request: NotProcessed("expired")
    await answered(stage)
    assert [task.attempt for task in await stage.tasks()] == [2]
    stage.log.lose_everything()
    await answered(stage)
    assert [task.attempt for task in await stage.tasks()] == [3]
    assert stage.asked() == {1: 1}


async def test_a_stream_does_not_wait_for_the_provider() -> None:
    """It expires, and is there again once there is something to score."""
    stage = await told(1)
    await move(stage)
    await stage.store()
    await stage.run_cycle()
    stage.now += timedelta(seconds=EXPIRY_SECONDS)
    assert await stage.log.read([evaluation_id(B, 1)], limit=1) == [[]]
    await answered(stage)
    [entries] = await stage.log.read([evaluation_id(B, 1)], limit=10)
    assert len(entries) == 1
    assert [task.attempt for task in await stage.tasks()] == [3]


async def test_a_request_that_fails_in_its_batch_is_charged_as_ever() -> None:
    """With `sync`, an executor asks after all: it was moved once, and is not moved again."""
    stage = await told(1)
    stage.provider.outcome = lambda _request: NotProcessed("expired")
    assert await move(stage, BatchFallback.SYNC) == 1
    await answered(stage)
    assert stage.asked() == {1: 1}
    assert [task.attempt for task in await stage.tasks()] == [3]
    assert (await stage.opening(1)).retries == SPEC.retries - 1


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
def test_only_what_was_withdrawn_is_opened_for_a_provider(kind: str, spec: BatchSpec, asks: bool) -> None:
    """Whatever else is tried again is tried by executors, also in a batch that asks a provider."""
    key = evaluation_id(B, 1)
    fault = p.Retrying(error=p.ErrorDetail(kind=kind), retry_at=START)
    events = history("queued provisioning retrying", evaluation_id=key, retrying=fault)
    decide = decisions.try_again(
        lambda _: AttemptFactory("coordinator", START, "epoch"),
        {key: 1},
        reason=p.OpeningReason.RETRY,
        retries=2,
        is_asked=is_asked_in(spec),
    )
    row = EvaluationRow(key, B, START.date(), Cursor(1, 2, Phase.RETRYING))
    decided = decide(EvaluationState(row, "epoch", published=True), {event.key: event for event in events})
    assert decided
    assert (decided.asks, decided.epoch) == (asks, "" if asks else "epoch")


def test_only_lines_of_targets_that_have_batches_are_emptied() -> None:
    """Not what is only to be scored, nor what others answer."""
    both = replace(ONE_BY_ONE, targets=(RECORDED, *ONE_BY_ONE.targets))
    assert [line.rpartition("\x1f")[2] for line in cancellable_queues(B, both)] == ["target-1"]
    assert cancellable_queues(B, replace(ONE_BY_ONE, targets=(RECORDED,))) == []
