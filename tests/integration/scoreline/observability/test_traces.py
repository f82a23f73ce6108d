"""One trace is one evaluation: from its acceptance through every attempt to the commit that ended it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from coordinator import telemetry
from domain.ids import evaluation_id
from eventlog.events import Event
from tests.builders import event
from tests.integration.coordinator.coordinating import House, house
from tests.storage_world import World
from tests.telemetry import tracing_spans

FIRST = evaluation_id("nightly", 1)


async def logged(here: House, number: int = 1) -> dict[tuple[int, int], Event]:
    """Return all events of an evaluation."""
    [state] = await here.ledger.evaluation_states([evaluation_id("nightly", number)])
    return dict((await here.ledger.stored([state.row]))[state.row.evaluation_id])


def named(spans: Sequence[ReadableSpan], name: str) -> list[ReadableSpan]:
    """Return the spans with a name."""
    return [span for span in spans if span.name == name]


def trace_of(span: ReadableSpan) -> str:
    """Format the id of a span's trace."""
    assert span.context
    return f"{span.context.trace_id:032x}"


async def test_an_evaluation_has_a_trace_of_its_own(redis_url, postgres_url):
    """The trace begins with the acceptance; every opening and publication belongs to it."""
    async with house(redis_url, postgres_url) as here:
        with tracing_spans() as spans:
            await here.submit("nightly", 2)
            await here.run_cycle()
            await here.work("nightly", {1: "retrying"})
            await here.run_cycle()
        begun = named(spans, "eval.coordinator.accept")
        assert [dict(span.attributes or {}) for span in begun] == [
            {
                "evaluation_id": evaluation_id("nightly", n),
                "batch_id": "nightly",
                "test_case_id": f"case-{n}",
            }
            for n in (1, 2)
        ]
        assert len({trace_of(span) for span in begun}) == 2
        events = await logged(here)
        openings = [events[attempt, 0].traceparent for attempt in (1, 2)]
        assert openings[0] == openings[1]
        assert (openings[0] or "").split("-")[1] == trace_of(begun[0])
        published = [
            s for s in named(spans, "eval.coordinator.publish") if trace_of(s) == trace_of(begun[0])
        ]
        assert [(s.attributes or {})["attempt"] for s in published] == [1, 2]
        enqueued = [s for s in named(spans, "eval.queue.enqueue") if trace_of(s) == trace_of(begun[0])]
        assert [dict(s.attributes or {}) for s in enqueued] == [
            {"batch_id": "nightly", "task_count": 2},
            {"batch_id": "nightly", "task_count": 1},
        ]


async def test_a_terminal_event_of_the_coordinator_belongs_to_the_trace(redis_url, postgres_url):
    """This holds for an evaluation that was never published, and for one that an operator cancels."""
    async with house(redis_url, postgres_url) as here:
        await here.submit("nightly", 1)
        await here.run_cycle()
        await here.operator.cancel("nightly")
        events = await logged(here)
        assert events[2, 0].type == "cancelled"
        assert events[2, 0].traceparent == events[1, 0].traceparent is not None


async def test_without_tracing_no_event_has_a_trace(redis_url, postgres_url, monkeypatch):
    """No sampling decision is made, and no trace field is written."""
    monkeypatch.setattr(telemetry, "is_tracing", lambda: False)
    async with house(redis_url, postgres_url) as here:
        with tracing_spans() as spans:
            await here.submit("nightly", 1)
            await here.run_cycle()
        assert (await logged(here))[1, 0].traceparent is None
        assert named(spans, "eval.coordinator.accept") == named(spans, "eval.coordinator.publish") == []


async def test_work_outside_an_evaluation_has_its_own_spans(redis_url, postgres_url):
    """Submitting a batch, scanning idle evaluations and retrying dead letters each have a span."""
    async with house(redis_url, postgres_url) as here:
        with tracing_spans() as spans:
            await here.submit("nightly", 2)
            await here.work_until_over("nightly", {1: "failed"})
            await here.operator.retry("nightly")
        [started] = named(spans, "eval.coordinator.start_batch")
        about = {"batch_id": "nightly", "test_count": 2, "eval_mode": "simulated"}
        assert dict(started.attributes or {}) == about
        [first, *_] = named(spans, "eval.coordinator.monitor")
        assert dict(first.attributes or {}) == {"batch_id": "nightly", "pending": 2, "completed": 0}
        [retried] = named(spans, "eval.coordinator.retry_failed")
        assert dict(retried.attributes or {}) == {"batch_id": "nightly", "retry_count": 1}
        assert all(span.parent is None for span in (started, first, retried))


@pytest.mark.parametrize("is_traced", [True, False])
async def test_the_commit_that_ended_an_evaluation_is_in_its_trace(is_traced):
    """The span is written once, and only where the evaluation is traced."""
    world, trace = World(), "0123456789abcdef" * 2
    traceparent = f"00-{trace}-0123456789abcdef-01" if is_traced else None
    storage = world.storage()
    with tracing_spans() as spans:
        for sequence, word in enumerate(("queued", "provisioning", "running", "completed")):
            world.xadd(replace(event(word, sequence=sequence), traceparent=traceparent))
            await storage.store(["evaluation-1"])
        await storage.store(["evaluation-1"])
    saved = named(spans, "eval.worker.save_scorecard")
    assert len(saved) == is_traced
    for span in saved:
        assert trace_of(span) == trace
        assert dict(span.attributes or {}) == {
            "test_case_id": "case-1",
            "batch_id": "batch-1",
            "attempt": 1,
        }
