"""Metrics and spans of an executor."""

from dataclasses import replace
from time import monotonic
from typing import Any, cast

import pytest

from domain.batch_spec import BatchSpec
from eventlog import payloads as p
from eventlog.codec import encode
from eventlog.log import Append, AppendResult
from executor.contract import Permanent, RateLimited, TargetReply, Transient
from executor.lanes.contract import LanePolicy
from executor.lanes.memory import MemoryLanes
from executor.lanes.permits import LaneUse
from executor.slot_pool import SlotPool
from executor.telemetry import ExecutorCounters, metrics_of
from taskqueue.queue_layout import queue_name
from taskqueue.tasks import Delivery, Task
from tests.builders import BATCH, CASE, event, records
from tests.telemetry import measuring, tracing_spans
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
from tests.unit.executor.measured import METERED, is_done
from tests.waiting import until

TRACEPARENT = f"00-{'a' * 32}-{'b' * 16}-01"


PROCESSED = "eval_worker_tasks_processed_total"


async def work_off(harness: Harness, *evaluation_ids: str, **opening: Any) -> None:
    await harness.register()
    for each in evaluation_ids:
        await harness.queue(each, opening=p.Queued(case=CASE, **opening))
    async with harness.executor():
        await until(harness.is_drained, timeout=86_400)


@virtually
async def test_an_evaluation_is_counted_and_timed():
    """With the type of its target, and the metrics of the event queue."""
    harness = Harness()
    with measuring() as measured:
        await work_off(harness, "e-1", "e-2")
    assert measured[PROCESSED, "success", "worker"] == 2
    assert measured.count("eval_worker_task_duration_ms", "fake", "worker") == 2
    assert measured.count("eval_event_queue_delay_ms") >= 1
    assert measured["eval_worker_started_total", "worker"] == 1
    assert measured["eval_worker_stopped_total", "requested", "worker"] == 1
    assert measured["eval_worker_heartbeat_total", "worker"] >= 1


@pytest.mark.parametrize(
    ("error", "retries", "status"),
    [
        (Permanent("no", "such model"), 0, "failure"),
        (Transient("blip", "once"), 1, "retry"),
        (RateLimited("slower"), 0, "retry"),
    ],
)
def test_each_closing_event_has_its_status(error, retries, status):
    """A retry is not a failure."""

    @virtually
    async def run() -> None:
        harness = Harness()
        harness.target.how = raising(error)
        await work_off(harness, "e-1", retries=retries)

    with measuring() as measured:
        run()
    assert measured[PROCESSED, status, "worker"] == 1


@virtually
async def test_a_time_out_and_a_fenced_attempt_have_a_status():
    """A fenced attempt is neither success nor failure."""
    harness = Harness(BatchSpec("batch", (TARGET,), timeout=5.0))
    harness.target.how = hang
    with measuring() as measured:
        await harness.register()
        await harness.queue("slow", opening=p.Queued(case=CASE, retries=0))
        await harness.queue("fenced", opening=p.Queued(case=CASE))
        await harness.fence("fenced")
        async with harness.executor():
            await until(harness.is_drained, timeout=86_400)
    assert measured[PROCESSED, "timeout", "worker"] == 1
    assert measured[PROCESSED, "lost", "worker"] == 1
    assert measured["eval_event_refused_total", "fenced"] == 1


async def test_a_crash_is_counted_apart_from_a_shutdown():
    """`requested` or `crashed`; a killed process counts nothing."""
    with measuring() as measured, pytest.raises(ZeroDivisionError):  # noqa: SIM117
        with metrics_of(ExecutorCounters("brittle"), SlotPool(1), is_disconnected=lambda: False):
            raise ZeroDivisionError
    assert measured.look()["eval_worker_stopped_total", "crashed", "brittle"] == 1
    assert measured["eval_worker_stopped_total", "requested", "brittle"] == 0


async def test_slots_and_the_oldest_task_are_gauges():
    """A task past its attempt deadline is overdue."""
    pool = SlotPool(4)
    with measuring() as idle, metrics_of(ExecutorCounters("seen"), pool, is_disconnected=lambda: True):
        idle.look()
        assert idle.gauge("eval_worker_oldest_task_seconds", "seen") == 0
        first, _ = pool.acquire([Delivery(BATCH, str(n), Task(f"e-{n}", 1)) for n in (1, 2)])
        first.acquired_at, first.deadline = monotonic() - 100, 60.0
        busy = idle.look()
        assert busy.gauge("eval_worker_slots", "busy", "seen") == 2
        assert busy.gauge("eval_worker_slots", "free", "seen") == 2
        assert busy.gauge("eval_worker_oldest_task_seconds", "seen") == pytest.approx(100, abs=5)
        assert busy.gauge("eval_worker_oldest_task_overdue_seconds", "seen") == pytest.approx(40, abs=5)
        assert busy.gauge("eval_dependency_up", "redis") == 0
    assert idle.gauge("eval_worker_slots", "busy", "seen") is None


@virtually
async def test_an_active_task_has_its_attempt_deadline():
    """One call of the target and the slowest evaluator."""
    spec = BatchSpec("batch", (TARGET,), evaluators=judged_by("a", "b", timeout=7.0), timeout=50.0)
    harness = Harness(spec)
    harness.target.how = hang
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor() as executor:
        await until(lambda: harness.target.asked, timeout=86_400)
        assert [(task.deadline, task.mode) for task in executor.slot_pool] == [(57.0, "fake")]
        await until(harness.is_drained, timeout=86_400)


@virtually
async def test_the_depth_of_the_event_queue_is_a_gauge():
    """Events that the log has not acknowledged, and the bytes they hold."""
    with measuring() as before:  # event queues of this process that were never closed
        pass
    harness = Harness()
    await harness.register()
    await harness.queue("e-1")
    harness.target.how = hang
    async with harness.executor():
        await until(lambda: harness.target.asked, timeout=86_400)
        with measuring() as measured:
            pass
        added = {
            name: (measured.gauge(name) or 0) - (before.gauge(name) or 0)
            for name in ("eval_event_queue_bytes", "eval_event_queue_depth")
        }
        assert added["eval_event_queue_bytes"] > 600
        assert added["eval_event_queue_depth"] in (0, 1)
        await harness.fence("e-1")
        harness.target.how = raising(Permanent("over", ""))
        await harness.batch_registry.unregister(BATCH)


async def traced(harness: Harness, evaluation_id: str, *, traceparent: str | None = TRACEPARENT) -> None:
    opening = replace(event(p.Queued(case=CASE), evaluation_id=evaluation_id), traceparent=traceparent)
    await harness.log.append([Append(evaluation_id, records([opening]), epoch="")])
    await harness.tasks.enqueue(BATCH, Task(evaluation_id, 1))


@virtually
async def test_a_traced_evaluation_has_its_spans():
    """From the opening to the ack, all in the trace of its opening."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("judge")))
    await harness.register()
    with tracing_spans() as spans:
        await traced(harness, "e-1")
        async with harness.executor():
            await until(harness.is_drained, timeout=86_400)
    found = {each.name: each for each in spans}
    assert found.keys() == {
        "eval.queue.consume",
        "eval.worker.process_task",
        "eval.worker.ask",
        "eval.worker.evaluate",
        "eval.queue.ack",
    }
    assert {each.parent.trace_id for each in spans if each.parent} == {int("a" * 32, 16)}
    task = found["eval.worker.process_task"]
    below = {each.name for each in spans if each.parent == task.get_span_context()}
    assert below == {"eval.worker.ask", "eval.worker.evaluate"}
    assert dict(task.attributes or {}) == {
        "evaluation_id": "e-1",
        "worker_id": "worker-1",
        "task_id": "e-1@1",
        "test_case_id": CASE.id,
        "status": "success",
        "eval_mode": "fake",
    }
    attributes = dict(found["eval.worker.ask"].attributes or {})
    assert attributes == {"target": "fake", "tokens": 8, "cost_usd": 0.5}
    judged = dict(found["eval.worker.evaluate"].attributes or {})
    assert judged == {
        "test_case_id": CASE.id,
        "evaluator": "judge",
        "result.score": 1.0,
        "result.passed": True,
    }


@virtually
async def test_events_of_a_traced_evaluation_carry_its_traceparent_on():
    """All but the claim, which precedes the replay of the opening."""
    harness = Harness()
    await harness.register()
    await traced(harness, "traced")
    await traced(harness, "not", traceparent=None)
    async with harness.executor():
        await until(harness.is_drained, timeout=86_400)
    carried = [each.traceparent for each in await harness.events("traced")]
    assert carried == [TRACEPARENT, None, TRACEPARENT, TRACEPARENT, TRACEPARENT]
    assert not any(b"traceparent" in encode(each) for each in await harness.events("not"))


@virtually
async def test_a_dead_letter_and_a_task_taken_over_have_their_spans():
    """Dead-lettered; and claimed as stalled: from which executor, by which."""
    harness = Harness(settings=replace(SETTINGS, slots=1))
    harness.target.how = raising(Permanent("no", "sk-secret"))
    await harness.register()
    with tracing_spans() as spans:
        await traced(harness, "e-1")
        await harness.tasks.consume("worker-0-0badcafe", {BATCH: 1}, block=SETTINGS.timings.block)
        async with harness.executor():
            await until(harness.is_drained, timeout=86_400)
    found = {each.name: dict(each.attributes or {}) for each in spans}
    claim = {"task_id": "e-1@1", "from_worker": "worker-0", "to_worker": "worker-1"}
    assert found["eval.queue.claim_stalled"] == claim
    assert found["eval.queue.nack"] == {"worker_id": "worker-1", "task_id": "e-1@1", "reason": "dlq"}
    assert found["eval.worker.process_task"]["status"] == "failure"
    assert "sk-secret" not in "".join(each.to_json() for each in spans)


@virtually
async def test_a_permit_has_its_span():
    """With lane, tokens and wait."""
    harness = Harness(BatchSpec("batch", (METERED,)))
    harness.lanes = MemoryLanes(harness.clock)
    harness.uses = {"model": LaneUse("lane", LanePolicy(rpm=6_000, tpm=60_000), estimate=12.0)}
    await harness.register()
    with tracing_spans() as spans:
        opening = replace(event(p.Queued(case=CASE), evaluation_id="e-1"), traceparent=TRACEPARENT)
        await harness.log.append([Append("e-1", records([opening]), epoch="")])
        await harness.tasks.enqueue(queue_name(BATCH, "target-0"), Task("e-1", 1))
        async with harness.executor():
            await until(lambda: is_done(harness), timeout=86_400)
    [acquired] = [each for each in spans if each.name == "eval.rate_limiter.acquire"]
    attributes = dict(acquired.attributes or {})
    assert (attributes["lane"], attributes["tokens_requested"]) == ("lane", 12.0)
    assert cast("float", attributes["wait_ms"]) > 0  # the lane was new to this executor


@virtually
async def test_a_fault_of_an_evaluator_is_in_its_span():
    """And the status in that of the attempt."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("judge")))
    harness.evaluators["judge"] = FakeEvaluator(raising(Transient("blip", "sk-secret")))
    harness.target.how = _with(ANSWER)
    await harness.register()
    with tracing_spans() as spans:
        await traced(harness, "e-1")
        async with harness.executor():
            await until(harness.is_drained, timeout=86_400)
    [judging] = [each for each in spans if each.name == "eval.worker.evaluate"]
    assert judging.status.description == "Transient"


def _with(answer: p.Answer) -> Any:
    async def reply(_question: object) -> TargetReply:
        return TargetReply(answer)

    return reply


def test_every_refusal_of_an_append_has_its_label():
    """The labels are the results of `append.lua`, in lower case."""
    refused = {answer.lower() for answer in AppendResult if not answer.acknowledged}
    assert refused == {"fenced", "closed", "conflict", "epoch"}
