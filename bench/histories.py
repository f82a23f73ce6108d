"""Event histories for benchmarks: short, complete evaluations."""

from collections.abc import Iterator, Sequence

from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.codec import encode, make_event
from eventlog.log import Append, AppendResult, EncodedEvent
from eventlog.redis_streams import RedisEventLog

CONCURRENT = 500
"""Evaluations in flight at once: their events interleave in the wake-up streams."""


def life(number: int, batch_id: str) -> list[EncodedEvent]:
    """Write the four events of a fast evaluation."""
    payloads: tuple[p.AnyPayload, ...] = (
        p.Queued(case=p.Case(id=str(number), input="What is 2 + 2?", expected="4")),
        p.Provisioning(executor="bench-1", nonce=f"n{number}"),
        p.Running(target="simulated"),
        p.Completed(
            verdict="passed",
            score=1.0,
            scores=(p.Score(evaluator="exact", score=1.0, passed=True),),
            usage=p.TokenUsage(input_tokens=10, output_tokens=3),
            cost_usd=0.0012,
            latency_ms=12.5,
            output="4",
        ),
    )
    now = utc_now()
    events = [
        make_event(
            payload,
            evaluation_id=f"{batch_id}-{number:06}",
            batch_id=batch_id,
            attempt=1,
            sequence=sequence,
            occurred_at=now,
            source="bench",
        )
        for sequence, payload in enumerate(payloads)
    ]
    return [EncodedEvent(event, encode(event)) for event in events]


async def preload(log: RedisEventLog, lives: Sequence[list[EncodedEvent]]) -> None:
    """Append each event by a call of its own, as slow evaluations would: no coalescing helps the reader."""
    for batch in _windows(lives):
        for sequence in range(len(batch[0])):
            calls = [Append(life[0].event.evaluation_id, [life[sequence]], "") for life in batch]
            for reply in await log.append(calls):
                if reply.results != (AppendResult.OK,):
                    raise RuntimeError(f"preload refused: {reply}")


def _windows(lives: Sequence[list[EncodedEvent]]) -> Iterator[Sequence[list[EncodedEvent]]]:
    for at in range(0, len(lives), CONCURRENT):
        yield lives[at : at + CONCURRENT]
