"""Five lives worth replaying, written the way they really come about; for tests and the guide's screens.

reordered-1     arrives in another order than it was written, one event twice
bridged-1       loses its middle; the gap is bridged, and one of the lost arrives afterwards
fenced-1        its executor is given up for lost, another takes over, and the lost one speaks again
retried-1       meets a rate limit, and succeeds at the second attempt
quarantined-1   is sent garbage, another body for a known key, and an event where none may be
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.codec import make_event
from eventlog.events import Event
from eventlog.keys import DEFAULT_SHARDS, events_key, shard_of
from tests.integration.worker import Site
from tests.waiting import until

BATCH = "nightly-7"
SAMPLES = ("reordered-1", "bridged-1", "fenced-1", "retried-1", "quarantined-1")
CASE = p.Case(id="capital-of-france", input="What is the capital of France?", expected="Paris")
COORDINATOR, ALPHA, BETA = "coordinator", "executor-a.1", "executor-b.4"
PACE = timedelta(milliseconds=400)
GAP_TIMEOUT = timedelta(seconds=1.5)
"""So long that, on a slow machine too, only what is meant to be bridged is."""
USAGE = p.TokenUsage(input_tokens=19, output_tokens=12)
SHORT = "Paris."
LONG = "The capital of France is Paris.\nIt lies on the Seine."


def opened(reason: str = "submitted") -> p.Queued:
    """The payload of an opening."""
    return p.Queued(case=CASE, reason=p.OpeningReason(reason))


def claimed(executor: str) -> p.Provisioning:
    """The payload of a claim."""
    return p.Provisioning(executor=executor, nonce=f"{executor}-nonce")


def running(target: str = "openai/gpt-4o-mini") -> p.Running:
    """The payload of a start."""
    return p.Running(target=target, process="4242")


def answered(output: str) -> p.Responded:
    """The payload of an answer."""
    return p.Responded(output=output, usage=USAGE, cost_usd=0.00042, latency_ms=812.5)


def judged(score: float) -> p.Scored:
    """The payload of a score."""
    return p.Scored(evaluator="exact", score=score, passed=score > 0.5, reason="compared with 'Paris'")


def done(score: float) -> p.Completed:
    """The payload of a verdict."""
    return p.Completed(
        verdict="passed" if score > 0.5 else "failed",
        score=score,
        scores=(
            p.Score(evaluator="exact", score=score, passed=score > 0.5, reason="compared with 'Paris'"),
        ),
        usage=USAGE,
        cost_usd=0.00042,
        latency_ms=812.5,
        exit_code=0,
    )


def whole(executor: str, output: str, score: float, reason: str = "submitted") -> list[p.AnyPayload]:
    """The payloads of a life from its opening to its verdict."""
    return [opened(reason), claimed(executor), running(), answered(output), judged(score), done(score)]


def attempt(
    evaluation_id: str, payloads: Sequence[p.AnyPayload], *, number: int = 1, began: datetime | None = None
) -> list[Event]:
    """Number payloads as one attempt; the coordinator opens it, the claim's executor does the rest."""
    executor = next((each.executor for each in payloads if isinstance(each, p.Provisioning)), COORDINATOR)
    began = began or utc_now() - PACE * 20 + PACE * 8 * number
    return [
        make_event(
            payload,
            evaluation_id=evaluation_id,
            batch_id=BATCH,
            attempt=number,
            sequence=sequence,
            occurred_at=began + PACE * sequence,
            source=COORDINATOR if sequence == 0 else executor,
        )
        for sequence, payload in enumerate(payloads)
    ]


async def write_samples(here: Site) -> None:
    """Write all five, while a storage worker is at work, and wait until it has stored them."""
    await _reordered(here)
    await _bridged(here)
    await _fenced(here)
    await _retried(here)
    await _quarantined(here)
    for evaluation_id in SAMPLES:  # for good: a slow machine must not see them expire
        await here.redis.persist(events_key(shard_of(evaluation_id, DEFAULT_SHARDS), evaluation_id))


async def _reordered(here: Site) -> None:
    events = attempt("reordered-1", whole(ALPHA, SHORT, 1.0))
    await here.add_plainly(events[n] for n in (0, 3, 1, 2, 1, 5, 4))
    await until(lambda: _is(here, "reordered-1", "completed"))


async def _bridged(here: Site) -> None:
    events = attempt("bridged-1", whole(ALPHA, SHORT, 1.0))
    await here.add_plainly([*events[:2], events[5]])
    await until(lambda: _is(here, "bridged-1", "completed"))
    await here.add_plainly([events[3]])
    await until(lambda: _counted(here, "bridged-1", 4))


async def _fenced(here: Site) -> None:
    lost = attempt("fenced-1", whole(ALPHA, LONG, 0.0))
    await here.add_plainly(lost[:3])
    await until(lambda: _is(here, "fenced-1", "running"))
    await here.add_plainly(attempt("fenced-1", whole(BETA, SHORT, 1.0, "lost"), number=2))
    await here.add_plainly(lost[3:])
    await until(lambda: _counted(here, "fenced-1", 12))


async def _retried(here: Site) -> None:
    limited = p.ErrorDetail(kind="rate_limit", message="429: slow down, try again in 2 s")
    gave_up = p.Retrying(error=limited, retry_at=utc_now())
    await here.add_plainly(attempt("retried-1", [opened(), claimed(ALPHA), running(), gave_up]))
    await here.add_plainly(attempt("retried-1", whole(BETA, LONG, 0.0, "retry"), number=2))
    await until(lambda: _is(here, "retried-1", "completed"))


async def _quarantined(here: Site) -> None:
    queued, claim, started, *rest = attempt("quarantined-1", whole(ALPHA, SHORT, 1.0))
    other = attempt("quarantined-1", [opened(), claimed(ALPHA), running("openai/gpt-4o")])[2]
    early = attempt("quarantined-1", [*whole(ALPHA, SHORT, 1.0)[:3], judged(1.0)])[3]
    await here.add_plainly([queued, claim, started, other])
    await here.add_fields("quarantined-1", {"event": '{"evaluation_id": "quarantined-1", "attem'})
    await here.add_plainly([early])
    shifted = [started, early, *rest]
    await here.add_plainly(
        make_event(
            each.data,
            evaluation_id=each.evaluation_id,
            batch_id=BATCH,
            attempt=1,
            sequence=sequence,
            occurred_at=started.occurred_at + PACE * (sequence - 2),
            source=ALPHA,
        )
        for sequence, each in enumerate(shifted[2:], start=4)
    )
    await until(lambda: _is(here, "quarantined-1", "completed"))
    await until(lambda: _refused(here, "quarantined-1", 3))


async def _is(here: Site, evaluation_id: str, state: str) -> bool:
    return await here.state(evaluation_id) == state


async def _counted(here: Site, evaluation_id: str, number: int) -> bool:
    asked = "SELECT count(*) FROM events WHERE evaluation_id = %s"
    return await here.rows(asked, evaluation_id) == [(number,)]


async def _refused(here: Site, evaluation_id: str, number: int) -> bool:
    return len(await here.reasons(evaluation_id)) == number
