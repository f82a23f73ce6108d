"""The logs in memory and on Redis respond alike to any sequence of calls."""

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
class EventVersion:
    """An event in one of two versions of its body."""

    attempt: int
    sequence: int
    type: str
    source: str


@dataclass(frozen=True)
class AppendStep:
    versions: tuple[EventVersion, ...]
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

VERSIONS = st.builds(
    EventVersion,
    st.integers(1, 3),
    st.integers(0, 4),
    st.sampled_from(TYPES),
    st.sampled_from(["owner", "rival"]),
)
EPOCHS = st.sampled_from(["current", "current", "current", "unchecked", "first"])
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        AppendStep,
        st.lists(VERSIONS, min_size=1, max_size=5).map(tuple),
        st.sampled_from([Mode.NORMAL, Mode.TAIL, Mode.WITHDRAWAL]),
        EPOCHS,
    ),
    st.builds(AppendStep, st.tuples(VERSIONS), st.just(Mode.CLAIM), EPOCHS),
    st.builds(SettleStep, st.integers(1, 3), st.integers(0, 4), st.booleans()),
    st.builds(LoseStep),
)


@dataclass(frozen=True)
class Snapshot:
    """The visible state of an evaluation after a step."""

    results: tuple[AppendResult, ...]
    returned: list[dict[bytes, bytes]]
    stream: list[dict[bytes, bytes]]
    committed: EventKey | None
    closing: bool
    expiring: bool
    wake_ups: int


class Tracer:
    """Executes the same steps on any implementation."""

    def __init__(self, form: Form, evaluation_id: str) -> None:
        self.form, self.log, self.evaluation_id = form, form.log, evaluation_id
        self.first_epoch = ""

    async def trace(self, steps: Sequence[Step]) -> list[Snapshot]:
        self.first_epoch = await self.log.epoch(self.evaluation_id)
        return [await self._take(step) for step in steps]

    async def _take(self, step: Step) -> Snapshot:
        results: tuple[AppendResult, ...] = ()
        returned: list[dict[bytes, bytes]] = []
        match step:
            case AppendStep():
                (reply,) = await self.log.append([await self._call(step)])
                results, returned = reply.results, [fields_of(entry) for entry in reply.stream]
            case SettleStep(attempt, sequence, ended):
                await self.log.settle([CommitMark(self.evaluation_id, attempt, sequence, ended)])
            case LoseStep():
                await self.form.lose_everything()
        return await self._snapshot(results, returned)

    async def _call(self, step: AppendStep) -> Append:
        current = await self.log.epoch(self.evaluation_id)
        epoch = {"current": current, "first": self.first_epoch, "unchecked": ""}[step.epoch]
        events = [
            event(
                each.type,
                evaluation_id=self.evaluation_id,
                attempt=each.attempt,
                sequence=each.sequence,
                source=each.source,
            )
            for each in step.versions
        ]
        return Append(self.evaluation_id, records(events), epoch, step.mode)

    async def _snapshot(
        self, results: tuple[AppendResult, ...], returned: list[dict[bytes, bytes]]
    ) -> Snapshot:
        (stream,) = await self.log.read([self.evaluation_id], limit=1_000)
        (committed,) = await self.log.committed([self.evaluation_id])
        (closing,) = await self.log.closing([self.evaluation_id])
        return Snapshot(
            results,
            returned,
            [fields_of(entry) for entry in stream],
            committed,
            closing,
            await self.form.is_expiring(self.evaluation_id),
            (await self.form.wake_ups(self.evaluation_id)).count(self.evaluation_id),
        )


@given(steps=st.lists(STEPS, max_size=12))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_memory_and_redis_respond_alike(redis_url, steps):
    """Step by step, both implementations give the same responses and end with the same streams."""
    evaluation_id = next(NAMES)

    async def traces() -> tuple[list[Snapshot], list[Snapshot]]:
        memory, redis = MemoryForm(), RedisForm(redis_url)
        try:
            await redis.lose_everything()
            on_redis = await Tracer(redis, evaluation_id).trace(steps)
        finally:
            await redis.aclose()
        return await Tracer(memory, evaluation_id).trace(steps), on_redis

    in_memory, on_redis = asyncio.run(traces())
    assert on_redis == in_memory
