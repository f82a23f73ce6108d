"""Whatever is asked of them, the log in memory and the log on Redis answer alike."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from eventlog.events import EventKey
from eventlog.log import Append, AppendResult, CommitMark, Mode
from tests.builders import event, records
from tests.conformance.eventlog.log_forms import Form, MemoryForm, RedisForm, fields_of

TYPES = ["queued", "provisioning", "running", "completed", "retrying", "failed", "cancelled"]
NAMES = (f"traced-{number}" for number in count())


@dataclass(frozen=True)
class Said:
    """An event, in one of two versions of what it says."""

    attempt: int
    sequence: int
    type: str
    source: str


@dataclass(frozen=True)
class AppendStep:
    said: tuple[Said, ...]
    mode: Mode
    epoch: Literal["current", "first", "unchecked"]


@dataclass(frozen=True)
class SettleStep:
    attempt: int
    sequence: int
    ended: bool


@dataclass(frozen=True)
class LoseStep:
    pass


Step = AppendStep | SettleStep | LoseStep

SAID = st.builds(
    Said, st.integers(1, 3), st.integers(0, 4), st.sampled_from(TYPES), st.sampled_from(["owner", "rival"])
)
EPOCHS = st.sampled_from(["current", "current", "current", "unchecked", "first"])
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        AppendStep,
        st.lists(SAID, min_size=1, max_size=5).map(tuple),
        st.sampled_from([Mode.NORMAL, Mode.TAIL, Mode.WITHDRAWAL]),
        EPOCHS,
    ),
    st.builds(AppendStep, st.tuples(SAID), st.just(Mode.CLAIM), EPOCHS),
    st.builds(SettleStep, st.integers(1, 3), st.integers(0, 4), st.booleans()),
    st.builds(LoseStep),
)


@dataclass(frozen=True)
class Sight:
    """All that can be seen of an evaluation after a step."""

    answers: tuple[AppendResult, ...]
    brought_along: list[dict[bytes, bytes]]
    stream: list[dict[bytes, bytes]]
    committed: EventKey | None
    closing: bool
    expiring: bool
    wake_ups: int


class Tracer:
    """Takes the same steps on any form."""

    def __init__(self, form: Form, evaluation_id: str) -> None:
        self.form, self.log, self.evaluation_id = form, form.log, evaluation_id
        self.first_epoch = ""

    async def trace(self, steps: Sequence[Step]) -> list[Sight]:
        self.first_epoch = await self.log.epoch(self.evaluation_id)
        return [await self._take(step) for step in steps]

    async def _take(self, step: Step) -> Sight:
        answers: tuple[AppendResult, ...] = ()
        brought: list[dict[bytes, bytes]] = []
        match step:
            case AppendStep():
                (reply,) = await self.log.append([await self._call(step)])
                answers, brought = reply.results, [fields_of(entry) for entry in reply.stream]
            case SettleStep(attempt, sequence, ended):
                await self.log.settle([CommitMark(self.evaluation_id, attempt, sequence, ended)])
            case LoseStep():
                await self.form.lose_everything()
        return await self._look(answers, brought)

    async def _call(self, step: AppendStep) -> Append:
        current = await self.log.epoch(self.evaluation_id)
        epoch = {"current": current, "first": self.first_epoch, "unchecked": ""}[step.epoch]
        said = [
            event(
                each.type,
                evaluation_id=self.evaluation_id,
                attempt=each.attempt,
                sequence=each.sequence,
                source=each.source,
            )
            for each in step.said
        ]
        return Append(self.evaluation_id, records(said), epoch, step.mode)

    async def _look(self, answers: tuple[AppendResult, ...], brought: list[dict[bytes, bytes]]) -> Sight:
        (stream,) = await self.log.read([self.evaluation_id], limit=1_000)
        (committed,) = await self.log.committed([self.evaluation_id])
        (closing,) = await self.log.closing([self.evaluation_id])
        return Sight(
            answers,
            brought,
            [fields_of(entry) for entry in stream],
            committed,
            closing,
            await self.form.is_expiring(self.evaluation_id),
            (await self.form.wake_ups(self.evaluation_id)).count(self.evaluation_id),
        )


@given(steps=st.lists(STEPS, max_size=12))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_memory_and_redis_answer_alike(redis_url, steps):
    """Step by step, both forms give the same answers and end up with the same streams."""
    evaluation_id = next(NAMES)

    async def traces() -> tuple[list[Sight], list[Sight]]:
        memory, redis = MemoryForm(), RedisForm(redis_url)
        try:
            await redis.lose_everything()
            on_redis = await Tracer(redis, evaluation_id).trace(steps)
        finally:
            await redis.aclose()
        return await Tracer(memory, evaluation_id).trace(steps), on_redis

    in_memory, on_redis = asyncio.run(traces())
    assert on_redis == in_memory
