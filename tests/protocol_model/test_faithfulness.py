"""The model equals the code: its Redis and its storage worker against the log and the timeline."""

from typing import Any

import pytest

from eventlog.events import Event as RealEvent
from eventlog.log import Append, AppendResult, Mode
from eventlog.memory import MemoryEventLog
from eventlog.timeline import Cursor, replay
from tests.builders import EVALUATION, arrive, event, records
from tests.protocol_model.redis import append
from tests.protocol_model.rules import EVERY_RULE
from tests.protocol_model.scenarios import BY_NAME
from tests.protocol_model.search import Findings, search
from tests.protocol_model.storage import plan
from tests.protocol_model.world import Event, Executor, Postgres, Stream

FOREVER = 2**62
DISORDERED = BY_NAME["1 executor crash, 2 reorder"]
SUSPECTED = BY_NAME["1 suspicion"]


@pytest.fixture(scope="module")
def suspected() -> Findings:
    return search(SUSPECTED, limit=1_500)


@pytest.fixture(scope="module")
def disordered() -> Findings:
    return search(DISORDERED, limit=1_500)


def met(findings: Findings, *names: str) -> set[Any]:
    """All the combinations of some parts that the search has met."""
    return {tuple(findings.catalogue.value(name, world) for name in names) for world in findings.worlds}


def real(modelled: Event) -> RealEvent:
    """Write the event out; who wrote it and what it carries make its body."""
    source = f"{modelled.by} {modelled.answer} {modelled.because}"
    return event(modelled.type, attempt=modelled.attempt, sequence=modelled.sequence, source=source)


async def answer_of_the_log(stream: Stream, asked: Event, mode: Mode) -> AppendResult:
    """Bring the real log to this stream, and ask it."""
    log = MemoryEventLog(lambda: 0)
    epoch = await log.epoch(EVALUATION)
    await log.append([Append(EVALUATION, records([real(e)]), epoch, Mode.TAIL) for e in stream.entries])
    [reply] = await log.append([Append(EVALUATION, records([real(asked)]), epoch, mode)])
    return reply.results[0]


async def test_redis_answers_as_the_log_does(suspected):
    """Every event an executor may send, to every stream that the search met, in every mode."""
    executors: set[tuple[Executor]] = met(suspected, "executor_0") | met(suspected, "executor_1")
    events = {each for (me,) in executors for each in (*me.outbox, *me.tail)}
    streams: set[tuple[Stream]] = met(suspected, "stream")
    for (stream,) in streams:
        for asked in events | set(stream.entries):
            mode = Mode.CLAIM if asked.sequence == 1 else Mode.NORMAL
            for as_asked in {mode, Mode.TAIL}:
                answer, _ = append(stream, asked, epoch=0, rules=EVERY_RULE, mode=as_asked)
                assert answer == await answer_of_the_log(stream, asked, as_asked), (stream, asked, as_asked)


@pytest.mark.parametrize("bridging", [False, True])
def test_storage_applies_what_the_timeline_does(disordered, bridging):
    """From every row that the search met, through every stream beside it, in order or over a gap."""
    pairs: set[tuple[Postgres, Stream]] = met(disordered, "postgres", "stream")
    for postgres, stream in pairs:
        fresh = [real(e) for e in stream.entries if e.key > postgres[:2] or e.attempt < postgres.attempt]
        walked = replay(Cursor(*postgres[:3]), arrive(fresh), bridge_until_ms=FOREVER if bridging else None)
        assert plan(postgres, stream, EVERY_RULE, bridging=bridging).after == walked.cursor
