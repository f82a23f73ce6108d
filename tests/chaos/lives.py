"""Short lives of evaluations, written by a few writers at once."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.event_queue import EventQueue, OwnedAttempt

QUESTIONS = ("2 + 2", "7 times 6", "the capital of Peru", "the colour of the sky", "17 squared")


@dataclass(frozen=True, slots=True)
class Plan:
    """How one evaluation will go."""

    evaluation_id: str
    question: str
    fate: str
    pauses: tuple[float, ...]


def plan(batch_id: str, number: int, rng: Random) -> Plan:
    """Draw an evaluation's fate."""
    fate = rng.choices(("passed", "wrong", "broken", "retried"), weights=(80, 14, 3, 3))[0]
    pauses = tuple(rng.random() * 0.02 for _ in range(8))
    return Plan(f"{batch_id}-{number:05}", rng.choice(QUESTIONS), fate, pauses)


async def live(plan: Plan, batch_id: str, queue: EventQueue, observe: Callable[[int], None]) -> None:
    """Live through one evaluation, recording what happens as it happens, never waiting for it."""
    attempt = queue.own(plan.evaluation_id, batch_id)
    case = p.Case(id=plan.evaluation_id, input=plan.question)
    attempt.open(p.Queued(case=case))
    pauses = iter(plan.pauses)
    await _start(attempt, plan, pauses.__next__)
    if plan.fate == "broken":
        attempt.record(p.Failed(error=p.ErrorDetail(kind="invalid_input", message="the question is empty")))
        return
    if plan.fate == "retried":
        fault = p.ErrorDetail(kind="connection_reset", message="the target hung up")
        attempt.record(p.Retrying(error=fault, retry_at=utc_now() + timedelta(milliseconds=10)))
        await attempt.acknowledged()
        attempt = queue.own(plan.evaluation_id, batch_id, attempt=2)
        attempt.open(p.Queued(case=case, reason=p.OpeningReason.RETRY))
        await _start(attempt, plan, pauses.__next__)
    await _finish(attempt, plan, pauses.__next__)
    observe(attempt.depth)


async def _start(attempt: OwnedAttempt, plan: Plan, pause: Callable[[], float]) -> None:
    attempt.record(p.Provisioning(executor="writer", nonce=plan.evaluation_id))
    await asyncio.sleep(pause())
    attempt.record(p.Running(target="simulated"))
    await asyncio.sleep(pause())


async def _finish(attempt: OwnedAttempt, plan: Plan, pause: Callable[[], float]) -> None:
    usage = p.TokenUsage(input_tokens=len(plan.question), output_tokens=5)
    answer = f"the answer to {plan.question}"
    attempt.record(p.Responded(output=answer, usage=usage, cost_usd=0.0001, latency_ms=12.0))
    passed = plan.fate != "wrong"
    score = p.Scored(evaluator="exact", score=float(passed), passed=passed)
    attempt.record(score)
    await asyncio.sleep(pause())
    attempt.record(
        p.Completed(
            verdict="passed" if passed else "failed",
            score=score.score,
            scores=(score,),
            usage=usage,
            cost_usd=0.0001,
            latency_ms=12.0,
        )
    )
