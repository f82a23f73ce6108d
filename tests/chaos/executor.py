"""An executor in a process of its own: claims what a coordinator has opened, answers, scores, completes.

Some evaluations it writes as a foreign client does, with plain XADDs that no script fences.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.codec import RawEntry, RejectedEntry, encode, make_event, read_entry
from eventlog.event_queue import AttemptLost, EventQueue, QueueSettings
from eventlog.log import AppendResult, EncodedEvent
from tests.chaos.disorder import write_plainly
from tests.chaos.witness import Witness, WitnessedLog

AT_ONCE = 6
USAGE = p.TokenUsage(input_tokens=11, output_tokens=5)
UNHURRIED = QueueSettings(linger=0.01)
"""So that an executor has something unsent when it is killed down."""


@dataclass(frozen=True, slots=True)
class Job:
    """What an executor is given to do."""

    redis_url: str
    batch_id: str
    evaluation_ids: tuple[str, ...]
    plainly: frozenset[str]
    journal: Path
    seed: int
    executor: str = "executor-1"
    attempt: int = 1


def work(job: Job) -> None:
    """Run the attempt, noting what the log returns."""
    logging.basicConfig(level=logging.INFO)
    asyncio.run(execute(job, Witness(job.journal)))


async def execute(job: Job, witness: Witness) -> None:
    """Do the job, a few evaluations at a time."""
    log = WitnessedLog.seen_by(witness, job.redis_url)
    turn, rng = asyncio.Semaphore(AT_ONCE), Random(job.seed)
    try:
        async with EventQueue(log, source=job.executor, settings=UNHURRIED) as queue:
            ones = (_one(job, key, queue, log=log, turn=turn, rng=rng) for key in job.evaluation_ids)
            await asyncio.gather(*ones)
    finally:
        await log.aclose()


async def _one(
    job: Job, key: str, queue: EventQueue, *, log: WitnessedLog, turn: asyncio.Semaphore, rng: Random
) -> None:
    async with turn:
        if key in job.plainly:
            await _write_plainly(job, key, log, rng)
        else:
            with suppress(AttemptLost):  # another executor owns it: stop, and drop the work
                await _run(job, key, queue, rng)


async def _run(job: Job, key: str, queue: EventQueue, rng: Random) -> None:
    claim = p.Provisioning(executor=job.executor, nonce=f"{job.executor} {key}")
    claimed = await queue.claim(key, job.batch_id, attempt=job.attempt, claim=claim)
    attempt, paid = claimed.attempt, _is_answered(key, claimed.stream)
    attempt.record(p.Running(target="simulated"))
    await asyncio.sleep(rng.random() * 0.02)
    if not paid:
        attempt.record(p.Responded(output="an answer", usage=USAGE))
        await asyncio.sleep(rng.random() * 0.02)
    attempt.record(p.Completed(verdict="passed", score=1.0, usage=p.TokenUsage() if paid else USAGE))
    await attempt.acknowledged()


def _is_answered(key: str, stream: Sequence[RawEntry]) -> bool:
    """Whether an answer is on record, from whichever attempt: it is not paid for again."""
    read = (read_entry(key, entry) for entry in stream)
    return any(not isinstance(entry, RejectedEntry) and entry.event.type == "responded" for entry in read)


async def _write_plainly(job: Job, key: str, log: WitnessedLog, rng: Random) -> None:
    story: list[p.AnyPayload] = [
        p.Provisioning(executor=job.executor, nonce=key),
        p.Running(target="simulated"),
        p.Responded(output="an answer", usage=USAGE),
        p.Completed(verdict="passed", score=1.0, usage=USAGE),
    ]
    for sequence, payload in enumerate(story, start=1):
        event = make_event(
            payload,
            evaluation_id=key,
            batch_id=job.batch_id,
            attempt=job.attempt,
            sequence=sequence,
            occurred_at=utc_now(),
            source=job.executor,
        )
        body = encode(event)
        log.witness.before([body])
        await write_plainly(log, EncodedEvent(event, body))
        log.witness.after(AppendResult.OK, body)
        await asyncio.sleep(rng.random() * 0.02)
