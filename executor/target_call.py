"""One call of a target: its request, rendered from case and template, and the call under every limit.

A call holds a permit of its lane, draws on the reservation of the batch's budget, and ends at its deadline.
The answer is redacted here, not only where it is stored: evaluators and later turns send it to others.
"""

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

from domain.batch_spec import Variant
from domain.template import UnknownField, case_fields, render
from eventlog import payloads as p
from eventlog import tracing
from eventlog.redacted_payloads import redact_answer
from executor.batch_runtime import BatchRuntime, invalid
from executor.budget.billable_calls import target_call
from executor.budget.task_budget import CallCost
from executor.contract import Target, TargetReply, TargetRequest, Transient
from executor.deadline import DeadlineExceeded, with_deadline
from executor.lanes.permits import CallUsage, LaneUse, Permits
from executor.outcome import TargetTimedOut
from taskqueue.batch_registry import BatchRegistry
from taskqueue.tasks import Delivery, QueueUnavailable


@dataclass(frozen=True, slots=True)
class SerialContext:
    """Values and turns that earlier evaluations of a serial group have stored."""

    stored: dict[str, JsonValue]
    history: tuple[tuple[str, str], ...] = ()


NO_CONTEXT = SerialContext({})


async def serial_context(delivery: Delivery, registry: BatchRegistry) -> SerialContext:
    """Read the context of an evaluation of a serial group; raises a `CallFault` where there is none."""
    try:
        [body] = await registry.contexts(delivery.batch_id, [delivery.task.evaluation_id])
    except QueueUnavailable as error:
        raise Transient("context", str(error)) from error
    if body is None:
        raise Transient("context", "the context of the serial group is missing")
    try:
        document: Any = from_json(body)
        history = tuple((str(prompt), str(answer)) for prompt, answer in document.get("history", ()))
        return SerialContext(dict(document.get("stored", {})), history)
    except (ValueError, TypeError, AttributeError) as error:
        raise invalid(f"the context of the serial group can't be read: {error}") from None


@dataclass(frozen=True, slots=True)
class TargetCall:
    """A call that is ready to be made."""

    runtime: BatchRuntime
    variant: Variant
    target: Target
    request: TargetRequest

    @property
    def lane(self) -> LaneUse | None:
        """The lane whose permit the call holds."""
        return self.runtime.lane(self.variant.number)

    async def make(self, permits: Permits) -> TargetReply:
        """Call the target; raises a `CallFault`, `TargetTimedOut`, or whatever the target raises."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        call = partial(permits.run_call, self.lane, self._before_deadline, _tokens_used)
        describe = partial(target_call, self.runtime, self.variant.number, self.request)
        reply = await permits.budget.pay_for(describe, call, _amount_paid)
        return reply if reply.answer.latency_ms else _with_latency(reply, loop.time() - started)

    async def _before_deadline(self) -> TargetReply:
        timeout = self.request.timeout
        try:
            with tracing.inner("eval.worker.ask", target=self.variant.target.label) as span:
                reply = await with_deadline(timeout, self.target.call(self.request))
                if span.is_recording():
                    usage, cost = reply.answer.usage, reply.answer.cost_usd
                    span.set_attributes({"tokens": usage.total, "cost_usd": cost})
                return replace(reply, answer=redact_answer(reply.answer))
        except DeadlineExceeded:
            raise TargetTimedOut(timeout) from None


def build_request(
    evaluation_id: str, opening: p.Queued, *, template: str | None, timeout: float, context: SerialContext
) -> TargetRequest:
    """Render the request of an evaluation; raises `Permanent` where the case lacks a field.

    Without a template there is no prompt: the answer is on record, and only its fields are needed.
    """
    fields = case_fields(opening.case, context.stored)
    try:
        prompt = "" if template is None else render(template, fields)
    except UnknownField as error:
        raise invalid(f"the prompt can't be filled in: {error}") from None
    return TargetRequest(
        evaluation_id=evaluation_id,
        prompt=prompt,
        case=opening.case,
        fields=fields,
        repetition=opening.repetition,
        timeout=timeout,
        history=context.history,
    )


def _tokens_used(reply: TargetReply) -> CallUsage:
    return CallUsage(reply.answer.usage.total, reply.limits)


def _amount_paid(reply: TargetReply) -> CallCost:
    answer = reply.answer
    return CallCost(p.TokenUsage(), 0.0) if answer.cached else CallCost(answer.usage, answer.cost_usd)


def _with_latency(reply: TargetReply, seconds: float) -> TargetReply:
    """Fill in the measured latency, where the target reported none."""
    return replace(reply, answer=replace(reply.answer, latency_ms=round(seconds * 1000, 3)))
