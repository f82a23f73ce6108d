"""Steps that tests of the executor share."""

import asyncio
from typing import Any

from domain.batch_spec import BatchSpec
from eventlog import payloads as p
from executor.contract import TargetReply
from taskqueue.tasks import QueueCounts, QueueUnavailable
from tests.builders import BATCH
from tests.unit.executor.harness import ANSWER, TARGET, Harness
from tests.waiting import until

LONG = BatchSpec("batch", (TARGET,), timeout=10_000.0)


def taking(seconds: float):
    async def ask(_question):
        await asyncio.sleep(seconds)
        return TargetReply(ANSWER)

    return ask


async def counts(harness: Harness, batch_id: str = BATCH) -> QueueCounts:
    [found] = await harness.tasks.counts([batch_id])
    return found


async def asked(harness: Harness, number: int = 1) -> None:
    await until(lambda: len(harness.target.asked) >= number)


class Flaky:
    """A queue, a registry or a log that is unavailable for a while."""

    def __init__(self, inner: Any, error: type[Exception] = QueueUnavailable) -> None:
        self._inner = inner
        self._error = error
        self.away = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.away:
                raise self._error("connection refused")
            return await method(*args, **kwargs)

        return call


PAID_SCORE = p.Score(
    evaluator="judge", score=0.5, passed=True, usage=p.TokenUsage(input_tokens=2), cost_usd=0.25
)


A_DAY = 86_400


async def done(harness: Harness, *batches: str) -> None:
    """Wait until every task is acked."""

    async def all_drained() -> bool:
        return all([await harness.is_drained(batch) for batch in batches or (BATCH,)])

    await until(all_drained, timeout=A_DAY)


async def run_one(harness: Harness, opening: p.Queued | None = None) -> None:
    await harness.register()
    await harness.queue("e-1", opening=opening)
    async with harness.executor():
        await done(harness)


async def give_paid_score(_judged: object) -> p.Score:
    return PAID_SCORE
