"""The steps between claiming an attempt and closing it: prepare, ask, judge."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from opentelemetry.trace import Span
from pydantic import JsonValue
from pydantic_core import from_json

from domain.batch_spec import Variant
from domain.template import UnknownField, case_fields, render
from eventlog import payloads as p
from eventlog import tracing
from eventlog.codec import OversizeEvent
from eventlog.event_queue import AttemptLost, OwnedAttempt
from eventlog.redacted_payloads import redact_answer
from executor.batch_runtime import BatchEvaluator, BatchRuntime, invalid
from executor.budget.billable_calls import judge_call, target_call
from executor.budget.task_budget import BillableCall, CallCost
from executor.contract import (
    NeverReached,
    RateLimited,
    ScoringRequest,
    Target,
    TargetReply,
    TargetRequest,
    Transient,
)
from executor.deadline import DeadlineExceeded, with_deadline
from executor.faults import EvaluatorFault, EvaluatorTimedOut, TargetTimedOut
from executor.lanes.permits import CallUsage, LaneUse, Permits
from executor.replay import ReplayedAttempt
from executor.verdict import brief, responded, scored, was_paid
from providers.limits import RateLimits
from taskqueue.batch_registry import BatchRegistry
from taskqueue.tasks import Delivery, QueueUnavailable


@dataclass(frozen=True, slots=True)
class Context:
    """What earlier evaluations of a group have left."""

    stored: dict[str, JsonValue]
    history: tuple[tuple[str, str], ...] = ()


NOTHING_LEFT = Context({})


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that is needed to begin: nothing was paid for yet, and nothing is missing."""

    known: ReplayedAttempt
    variant: Variant
    target: Target | None
    """None where the answer is on record: nobody will be asked."""
    judges: Sequence[BatchEvaluator]
    request: TargetRequest
    lane: LaneUse | None = None
    """Whom to ask before the target is."""
    runtime: BatchRuntime | None = None
    is_sequential: bool = False
    """Whether judges are called one after the other: the batch limits its calls in flight overall."""

    def paid_call(self) -> BillableCall:
        """Describe the call of the target, for the batch's budget."""
        if self.runtime is None:
            return BillableCall("target")
        return target_call(self.runtime, self.variant.number, self.request)


async def prepare(
    delivery: Delivery, known: ReplayedAttempt, runtime: BatchRuntime, batch_registry: BatchRegistry
) -> Prepared:
    """See that an evaluation can be worked on at all, before anything is paid for."""
    opening = known.opening
    variant = runtime.variant(opening.variant)
    context = await _context(delivery, batch_registry) if opening.in_group else NOTHING_LEFT
    target = None if known.answer else runtime.target(variant.number)
    request = _question(delivery, opening, runtime, variant, context, prompted=target is not None)
    lane, is_sequential = runtime.lane(variant.number), runtime.spec.scores_sequentially
    return Prepared(known, variant, target, runtime.all_judges(), request, lane, runtime, is_sequential)


def _question(  # noqa: PLR0913 - it draws on all of them
    delivery: Delivery,
    opening: p.Queued,
    runtime: BatchRuntime,
    variant: Variant,
    context: Context,
    *,
    prompted: bool,
) -> TargetRequest:
    case = opening.case
    fields = case_fields(case, context.stored)
    try:
        prompt = render(variant.prompt, fields) if prompted else ""
    except UnknownField as error:
        raise invalid(f"the prompt can't be filled in: {error}") from None
    return TargetRequest(
        evaluation_id=delivery.task.evaluation_id,
        prompt=prompt,
        case=case,
        fields=fields,
        repetition=opening.repetition,
        timeout=runtime.spec.timeout,
        history=context.history,
    )


async def _context(delivery: Delivery, batch_registry: BatchRegistry) -> Context:
    try:
        [body] = await batch_registry.contexts(delivery.batch_id, [delivery.task.evaluation_id])
    except QueueUnavailable as error:
        raise Transient("context", str(error)) from error
    if body is None:
        raise Transient("context", "what earlier evaluations of the group left is not there")
    try:
        left: Any = from_json(body)
        history = tuple((str(asked), str(answered)) for asked, answered in left.get("history", ()))
        return Context(dict(left.get("stored", {})), history)
    except (ValueError, TypeError, AttributeError) as error:
        raise invalid(f"what earlier evaluations of the group left can't be read: {error}") from None


async def obtain(prepared: Prepared, permits: Permits) -> TargetReply:
    """Ask the target; raises a `CallFault`, `TargetTimedOut`, or whatever the target raises."""
    answer, target, request = prepared.known.answer, prepared.target, prepared.request
    if answer or not target:
        return TargetReply(answer or p.Answer(output=""))
    label = prepared.variant.target.label
    loop = asyncio.get_running_loop()
    started = loop.time()
    ask = partial(permits.run_call, prepared.lane, partial(_ask, target, request, label), _used_by_reply)
    reply = await permits.budget.pay_for(prepared.paid_call, ask, _paid_for_reply)
    return reply if reply.answer.latency_ms else _timed(reply, loop.time() - started)


async def _ask(target: Target, request: TargetRequest, label: str) -> TargetReply:
    try:
        with tracing.inner("eval.worker.ask", target=label) as asking:
            reply = await with_deadline(request.timeout, target.call(request))
            if asking.is_recording():
                usage, cost = reply.answer.usage, reply.answer.cost_usd
                asking.set_attributes({"tokens": usage.total, "cost_usd": cost})
            # Here, not only where it is stored: judges and later turns send it to others.
            return replace(reply, answer=redact_answer(reply.answer))
    except DeadlineExceeded:
        raise TargetTimedOut(request.timeout) from None


def _used_by_reply(reply: TargetReply) -> CallUsage:
    return CallUsage(reply.answer.usage.total, reply.limits)


def _paid_for_reply(reply: TargetReply) -> CallCost:
    answer = reply.answer
    return CallCost(p.TokenUsage(), 0.0) if answer.cached else CallCost(answer.usage, answer.cost_usd)


def _timed(reply: TargetReply, seconds: float) -> TargetReply:
    """Fill in how long it took, where the target did not say."""
    return replace(reply, answer=replace(reply.answer, latency_ms=round(seconds * 1000, 3)))


def put_on_record(owned: OwnedAttempt, answer: p.Answer, *, on_record: bool) -> None:
    """Record an answer before it is judged; if the attempt is no longer ours, have it kept all the same."""
    event = responded(answer, on_record=on_record)
    try:
        owned.record(event)
    except AttemptLost:
        if not event.cached:
            owned.keep_late(event)
        raise


async def judge(
    owned: OwnedAttempt, prepared: Prepared, answer: p.Answer, permits: Permits
) -> list[p.Score]:
    """Have an answer scored by every evaluator that has not done so yet; raises `EvaluatorFault`.

    All of them finish before a fault of one is raised. Then every score found is put on record, paid or
    not: the next attempt, or `batch retry`, runs only the evaluators that are missing.
    """
    request, scores = prepared.request, dict(prepared.known.scores)
    fields = {**request.fields, "output": answer.output}
    judged = ScoringRequest(request.case, answer.output, fields, answer)
    missing = [each for each in prepared.judges if each.spec.name not in scores]
    judging = _one_by_one if prepared.is_sequential else _judgements
    found = await judging(missing, judged, owned, permits)
    scores |= {each.evaluator: each for each in found if isinstance(each, p.Score)}
    if faults := [each for each in found if isinstance(each, EvaluatorFault)]:
        _record_unpaid(owned, [each for each in found if isinstance(each, p.Score)])
        names = [each.spec.name for each in prepared.judges if each.spec.name in scores]
        raise _worst(faults, answer, [scores[name] for name in names])
    return [scores[each.spec.name] for each in prepared.judges]


def _record_unpaid(owned: OwnedAttempt, scores: Sequence[p.Score]) -> None:
    """Put scores on record that `completed` would have carried; paid ones are there already."""
    for score in scores:
        if not was_paid(score):
            try:
                owned.record(scored(score))
            except OversizeEvent:
                owned.record(scored(brief(score)))


async def _one_by_one(
    judges: Sequence[BatchEvaluator], judged: ScoringRequest, owned: OwnedAttempt, permits: Permits
) -> list[p.Score | EvaluatorFault]:
    return [await _judgement(each, judged, owned, permits) for each in judges]


async def _judgements(
    judges: Sequence[BatchEvaluator], judged: ScoringRequest, owned: OwnedAttempt, permits: Permits
) -> list[p.Score | EvaluatorFault]:
    if len(judges) < 2:  # no task is needed to wait for one
        return await _one_by_one(judges, judged, owned, permits)
    found = await asyncio.gather(
        *(_judgement(each, judged, owned, permits) for each in judges), return_exceptions=True
    )
    return [_heard(each, result) for each, result in zip(judges, found, strict=True)]


def _heard(
    judge: BatchEvaluator, result: p.Score | EvaluatorFault | BaseException
) -> p.Score | EvaluatorFault:
    match result:
        case p.Score() | EvaluatorFault():
            return result
        case asyncio.CancelledError():
            return EvaluatorFault(judge.spec.name, result)
        case _:
            raise result


async def _judgement(
    judge: BatchEvaluator, judged: ScoringRequest, owned: OwnedAttempt, permits: Permits
) -> p.Score | EvaluatorFault:
    """Ask one evaluator, and put what it says on record if it was paid for."""
    spec, said = judge.spec, list[RateLimits]()
    judged = replace(judged, on_rate_limits=said.append) if judge.lane else judged
    try:
        ask = partial(
            permits.run_call,
            judge.lane,
            partial(_heard_out, judge, judged),
            lambda score: CallUsage(score.usage.total, said[-1] if said else None),
        )
        score = await permits.budget.pay_for(partial(judge_call, judge, judged), ask, _paid_for_score)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a judge may not take the executor with it
        return EvaluatorFault(spec.name, error)
    if score.evaluator != spec.name:
        score = replace(score, evaluator=spec.name)
    if was_paid(score):
        owned.record(scored(score))
    return score


async def _heard_out(judge: BatchEvaluator, judged: ScoringRequest) -> p.Score:
    case, evaluator = judged.case.id, judge.spec.name
    try:
        with tracing.inner("eval.worker.evaluate", test_case_id=case, evaluator=evaluator) as judging:
            score = await with_deadline(judge.spec.timeout, judge.evaluator.score(judged))
            if judging.is_recording():
                _say_score(judging, score)
            return score
    except DeadlineExceeded:
        raise EvaluatorTimedOut(judge.spec.timeout) from None


def _paid_for_score(score: p.Score) -> CallCost:
    return CallCost(score.usage, score.cost_usd)


def _say_score(judging: Span, score: p.Score) -> None:
    judging.set_attribute("result.score", score.score)
    if score.passed is not None:
        judging.set_attribute("result.passed", score.passed)


def _gravity(fault: EvaluatorFault) -> tuple[bool, bool, bool]:
    is_free = isinstance(fault.cause, RateLimited | NeverReached)
    return fault.is_hopeless, not is_free, isinstance(fault.cause, NeverReached)


def _worst(faults: Sequence[EvaluatorFault], answer: p.Answer, scores: Sequence[p.Score]) -> EvaluatorFault:
    """Choose what decides: a hopeless fault before one that may pass, a charged one before a free one."""
    worst = max(faults, key=_gravity)
    others = [fault for fault in faults if fault is not worst]
    return EvaluatorFault(worst.evaluator, worst.cause, others=others, answer=answer, scores=scores)
