"""Scoring of one answer: every evaluator of the batch that has no score on record yet.

Evaluators run concurrently, unless the batch limits its calls in flight overall. A paid score is recorded
as soon as it exists. All evaluators finish before a fault of one is raised; then every other score is
recorded too, so that a retry, or `batch retry`, calls only the missing evaluators.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from opentelemetry.trace import Span

from eventlog import payloads as p
from eventlog import tracing
from eventlog.codec import OversizeEvent
from eventlog.event_queue import OwnedAttempt
from executor.batch_runtime import BatchEvaluator
from executor.budget.billable_calls import judge_call
from executor.budget.task_budget import CallCost
from executor.contract import NeverReached, RateLimited, ScoringRequest
from executor.deadline import DeadlineExceeded, with_deadline
from executor.lanes.permits import CallUsage, Permits
from executor.outcome import EvaluatorFault, EvaluatorTimedOut, is_paid, scored, with_short_reason
from providers.limits import RateLimits


class Scoring:
    """The evaluators of one attempt, and where their scores are recorded."""

    __slots__ = ("_evaluators", "_is_sequential", "_owned", "_permits")

    def __init__(
        self,
        evaluators: Sequence[BatchEvaluator],
        owned: OwnedAttempt,
        permits: Permits,
        *,
        is_sequential: bool,
    ) -> None:
        self._evaluators = evaluators
        self._owned = owned
        self._permits = permits
        self._is_sequential = is_sequential

    async def score(self, request: ScoringRequest, on_record: dict[str, p.Score]) -> list[p.Score]:
        """Return the score of every evaluator, in order; raises `EvaluatorFault`."""
        missing = [each for each in self._evaluators if each.spec.name not in on_record]
        results = await self._call_all(missing, request)
        new = [each for each in results if isinstance(each, p.Score)]
        scores = on_record | {each.evaluator: each for each in new}
        ordered = [scores[each.spec.name] for each in self._evaluators if each.spec.name in scores]
        if faults := [each for each in results if isinstance(each, EvaluatorFault)]:
            self._record_unpaid(new)
            raise _decisive(faults, request.answer, ordered)
        return ordered

    async def _call_all(
        self, evaluators: Sequence[BatchEvaluator], request: ScoringRequest
    ) -> list[p.Score | EvaluatorFault]:
        if self._is_sequential or len(evaluators) < 2:  # no task is needed to wait for one
            return [await self._call(each, request) for each in evaluators]
        results = await asyncio.gather(
            *(self._call(each, request) for each in evaluators), return_exceptions=True
        )
        return [_result(each, result) for each, result in zip(evaluators, results, strict=True)]

    async def _call(self, evaluator: BatchEvaluator, request: ScoringRequest) -> p.Score | EvaluatorFault:
        """Call one evaluator under its limits, and record its score if it was paid for."""
        name, limits = evaluator.spec.name, list[RateLimits]()
        if evaluator.lane:
            request = replace(request, on_rate_limits=limits.append)
        call = partial(
            self._permits.run_call,
            evaluator.lane,
            partial(_before_deadline, evaluator, request),
            lambda score: CallUsage(score.usage.total, limits[-1] if limits else None),
        )
        describe = partial(judge_call, evaluator, request)
        try:
            score = await self._permits.budget.pay_for(describe, call, _amount_paid)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - an evaluator must not end the executor
            return EvaluatorFault(name, error)
        if score.evaluator != name:
            score = replace(score, evaluator=name)
        if is_paid(score):
            self._owned.record(scored(score))
        return score

    def _record_unpaid(self, scores: Sequence[p.Score]) -> None:
        """Record the scores that `completed` would have carried; paid ones are on record already."""
        for score in scores:
            if not is_paid(score):
                try:
                    self._owned.record(scored(score))
                except OversizeEvent:
                    self._owned.record(scored(with_short_reason(score)))


async def _before_deadline(evaluator: BatchEvaluator, request: ScoringRequest) -> p.Score:
    name, timeout = evaluator.spec.name, evaluator.spec.timeout
    try:
        with tracing.inner("eval.worker.evaluate", test_case_id=request.case.id, evaluator=name) as span:
            score = await with_deadline(timeout, evaluator.evaluator.score(request))
            if span.is_recording():
                _set_attributes(span, score)
            return score
    except DeadlineExceeded:
        raise EvaluatorTimedOut(timeout) from None


def _result(
    evaluator: BatchEvaluator, result: p.Score | EvaluatorFault | BaseException
) -> p.Score | EvaluatorFault:
    match result:
        case p.Score() | EvaluatorFault():
            return result
        case asyncio.CancelledError():
            return EvaluatorFault(evaluator.spec.name, result)
        case _:
            raise result


def _amount_paid(score: p.Score) -> CallCost:
    return CallCost(score.usage, score.cost_usd)


def _set_attributes(span: Span, score: p.Score) -> None:
    span.set_attribute("result.score", score.score)
    if score.passed is not None:
        span.set_attribute("result.passed", score.passed)


def _severity(fault: EvaluatorFault) -> tuple[bool, bool, bool]:
    is_uncharged = isinstance(fault.cause, RateLimited | NeverReached)
    return fault.is_permanent, not is_uncharged, isinstance(fault.cause, NeverReached)


def _decisive(
    faults: Sequence[EvaluatorFault], answer: p.Answer, scores: Sequence[p.Score]
) -> EvaluatorFault:
    """Choose the fault that decides: permanent before transient, charged before uncharged."""
    worst = max(faults, key=_severity)
    others = [fault for fault in faults if fault is not worst]
    return EvaluatorFault(worst.evaluator, worst.cause, others=others, answer=answer, scores=scores)
