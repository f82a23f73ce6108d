"""Seventeen edge cases of running experiments against providers: what must hold in each, one by one.

Where only an executor is concerned it runs in virtual time; where a batch is, on real servers, with a real
executor (`worked_off`) and a simulated provider at the other end of a real connection.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from domain.batch_spec import BatchSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.event_queue import AttemptLost
from eventlog.redis_streams import connect
from executor.app import run_executor
from executor.contract import ExecutionEnvironment, Permanent, TargetReply, TargetRequest
from executor.lanes.contract import AcquireRequest, CallOutcome, LanePolicy
from executor.lanes.permits import LaneUse
from executor.lanes.redis_lanes import RedisLanes
from executor.registry import parse_evaluator, parse_target
from executor.settings import ExecutorSettings, RedisSettings
from projections.database.errors import DatabaseUnavailable
from projections.folds.change import Change
from projections.store.contract import CommitResult
from projections.store.memory import MemoryStore
from scoreline.submit.spec.metering import metered
from storage_worker.storage import Storage
from taskqueue.queue_layout import SCORING_PARTITION, queue_name
from tests.builders import BATCH, CASE, history
from tests.integration.coordinator.coordinating import ANSWER, House, house
from tests.provider import provider
from tests.storing import GAP_POLICY, World
from tests.unit.executor.harness import ANSWER as REPLY
from tests.unit.executor.harness import SETTINGS, TARGET, Harness, judged_by, raising, virtually
from tests.unit.executor.lanes.test_client import MODEL, harness_with
from tests.waiting import until

LONG = BatchSpec("batch", (TARGET,), timeout=10_000.0)
KEY = "sk-edge-0123456789abcdef"


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url) as made:
        yield made


def model_spec(base_url: str, *, retries: int, **options: Any) -> BatchSpec:
    """Build a model target at an address."""
    model = {"type": "anthropic", "model": "claude-haiku-4-5", "base_url": base_url}
    return metered(BatchSpec("a batch", (parse_target({**model, **options}),), retries=retries))


async def take_turns(here: House, batch_id: str) -> bool:
    """Run coordinator cycles and a real executor; returns whether the batch is over."""
    here_too = ExecutionEnvironment(environ={"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY})
    settings = ExecutorSettings("worker", slots=8, once=True)
    await here.run_cycle()
    await run_executor(RedisSettings(here.site.redis_url), settings, environment=here_too)
    await here.store(batch_id)
    await here.run_cycle()
    return (await here.batch(batch_id))[1]


async def worked_off(here: House, batch_id: str) -> None:
    """Run both in turns until a batch is over."""
    await until(lambda: take_turns(here, batch_id), timeout=60)


async def events_of(here: House, batch_id: str) -> list[tuple[int, str, str | None]]:
    """List the events of an evaluation: its attempt, type, and kind of error."""
    sought = """SELECT attempt, type, event::jsonb #>> '{data,error,kind}'
        FROM events WHERE evaluation_id = %s ORDER BY attempt, sequence"""
    return await here.ask(sought, evaluation_id(batch_id, 1))


# -- lifecycle


@virtually
async def test_edge_case_01_graceful_shutdown():
    """On SIGTERM, tasks that can end in time end, the rest is requeued at no charge, none is started."""
    harness = Harness(LONG, replace(SETTINGS, slots=2))

    async def ask(question: TargetRequest) -> TargetReply:
        await asyncio.sleep(5 if question.evaluation_id == "quick" else 5_000)
        return TargetReply(REPLY)

    harness.target.how = ask
    await harness.register()
    for name in ("quick", "slow", "unbegun"):
        await harness.queue(name)
    async with harness.executor():
        await until(lambda: len(harness.target.asked) == 2)
    assert isinstance(await harness.last("quick"), p.Completed)
    handed_back = await harness.last("slow")
    assert (handed_back.error.kind, handed_back.retry_at <= harness.now()) == ("shutdown", True)
    assert await harness.story("unbegun") == "queued"


async def test_edge_case_02_cancellation(here: House):
    """Cancelled with a call in flight: its owner is fenced, and the paid answer is kept as late."""
    await here.submit("nightly", 2)
    await here.run_cycle()
    await here.work("nightly", {1: "goes on", 2: "goes on"})
    await here.operator.cancel("nightly")
    owned = here.owned[evaluation_id("nightly", 1)]
    owned.record(ANSWER)
    with pytest.raises(AttemptLost):
        await owned.acknowledged()
    late = "SELECT verdict FROM events WHERE type = 'responded'"

    async def kept() -> list[tuple[str]]:
        await here.store("nightly")
        return await here.ask(late)

    assert await until(kept) == [("late",)]
    assert await here.states("nightly") == ["2 cancelled", "2 cancelled"]
    assert await here.ask("SELECT sum(cost_usd)::float FROM batch_progress") == [(ANSWER.cost_usd,)]


async def test_edge_case_03_crash_recovery(here: House):
    """Tasks of crashed executors are attempted again elsewhere, and a paid answer is reused."""
    await here.submit("nightly", 3)
    await here.run_cycle()
    await here.work("nightly", {1: "dies", 2: "answers and dies"})
    await here.run_cycle(2)
    assert await here.states("nightly") == ["2 queued", "2 queued", "1 completed"]
    assert (await here.opening("nightly", 1, 2)).answer is None
    known = (await here.opening("nightly", 2, 2)).answer
    assert known is not None
    assert (known.output, known.cost_usd) == (ANSWER.output, ANSWER.cost_usd)


# -- resources


async def test_edge_case_04_memory_pressure(redis_url: str, postgres_url: str):
    """However large a batch is, at most a window of it is in Redis; the rest waits in Postgres."""
    async with house(redis_url, postgres_url, window=20) as here:
        await here.submit("large", 100)
        sizes = []
        while not (await here.batch("large"))[1]:
            await here.run_cycle()
            sizes.append(len(await here.work("large")))
            assert len(sizes) < 20
        assert max(sizes) == 20
        assert sum(sizes) == 100
        assert await here.states("large") == ["1 completed"] * 100


async def test_edge_case_05_high_throughput():
    """A thousand evaluations that end at once take one read and one transaction, not thousands."""
    world, commits = World(), []

    class Counting(MemoryStore):
        async def commit(self, changes: Sequence[Change]) -> CommitResult:
            commits.append(len(changes))
            return await super().commit(changes)

    tables = Counting(lambda: 0.0)
    ids = [f"e{number}" for number in range(1_000)]
    for key in ids:
        world.xadd(*history("queued provisioning running responded completed", evaluation_id=key))
    storage = world.storage(tables=tables)
    await storage.process(ids)
    assert storage.counts.events["applied"] == 5_000
    assert commits == [1_000]


@virtually
async def test_edge_case_06_db_write_failure():
    """An answer that arrives during an outage of Postgres waits in the log; it is paid and stored once."""
    harness, fates = Harness(), ["unreached", "reply lost"]

    class Away(MemoryStore):
        async def commit(self, changes: Sequence[Change]) -> CommitResult:
            fate = fates.pop(0) if fates else ""
            committed = None if fate == "unreached" else await super().commit(changes)
            if fate or committed is None:
                raise DatabaseUnavailable(fate)
            return committed

    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await until(harness.is_drained)
    tables = Away(lambda: 0.0)
    await Storage(harness.log, tables, GAP_POLICY).process(["e-1"])
    assert (fates, len(harness.target.asked)) == ([], 1)
    assert len(tables.events) == 5
    [progress] = tables.progress.values()
    assert (progress.completed, float(progress.cost_usd)) == (1, REPLY.cost_usd)


# -- errors


async def test_edge_case_07_poison_pill(here: House):
    """A case that breaks the provider each time uses all its retries, then becomes a dead letter."""
    async with provider(server_error=1.0) as sim:
        await here.submit("poison", 1, spec=model_spec(sim.base_url, retries=2))
        await worked_off(here, "poison")
        assert sim.stats.of("/v1/messages", 500) == 3
    assert await here.states("poison") == ["3 failed"]
    assert (await here.error("poison", 1))["kind"] == "http_500"
    assert await here.batch("poison") == ("completed", True)


async def test_edge_case_08_partial_stream_failure(here: House):
    """A partial stream is no answer: none of it is recorded, and the retry is recorded whole."""
    async with provider(mode="text", text="one two three four", stream_broken=1.0) as sim:
        await here.submit("stream", 1, spec=model_spec(sim.base_url, retries=3, stream=True))
        await take_turns(here, "stream")
        sim.change(stream_broken=0)
        await worked_off(here, "stream")
    life = await events_of(here, "stream")
    assert [each for each in life if each[1] in ("responded", "retrying", "completed")] == [
        (1, "retrying", "broken_stream"),
        (2, "responded", None),
        (2, "completed", None),
    ]
    query = "SELECT event::jsonb #>> '{data,output}' FROM events WHERE type = 'responded'"
    assert await here.ask(query) == [("one two three four",)]


async def test_edge_case_09_provider_returns_invalid_response(here: House):
    """A web page instead of a reply is a transient error, never an answer."""
    async with provider(html=1.0) as sim:
        await here.submit("garbage", 1, spec=model_spec(sim.base_url, retries=1))
        await worked_off(here, "garbage")
    life = await events_of(here, "garbage")
    assert [(attempt, kind) for attempt, _, kind in life if kind] == [
        (1, "invalid_response"),
        (2, "invalid_response"),
    ]
    assert "responded" not in {what for _, what, _ in life}


# -- short cuts


@virtually
async def test_edge_case_10_cached_result():
    """A cached answer needs no lane: it is scored at once although the provider is blocked for hours."""
    harness, lanes = harness_with(
        MODEL, evaluators=judged_by("judge"), model=LaneUse("shut", LanePolicy(rpm=0.01))
    )
    await harness.register()
    for number in range(20):
        await harness.queue(f"e-{number}", opening=p.Queued(case=CASE, answer=replace(REPLY, cached=True)))
    async with harness.executor():
        await until(lambda: harness.is_drained(queue_name(BATCH, SCORING_PARTITION)))
        assert harness.loop.time() < 10
    assert harness.target.asked == []
    assert lanes.outcomes()[CallOutcome.OK] == 0
    assert (await harness.last("e-0")).verdict == "passed"


@virtually
async def test_edge_case_11_invalid_input():
    """Invalid input fails before a call, and its permit is returned unused."""
    harness, lanes = harness_with(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    harness.spec = replace(harness.spec, prompts=("{nowhere}",))
    await harness.register()
    for number in range(3):
        await harness.queue(f"e-{number}")
    async with harness.executor():
        await until(lambda: harness.is_drained(queue_name(BATCH, "target-0")))
    assert harness.target.asked == []
    assert (await harness.last("e-0")).error.kind == "invalid"
    assert set(lanes.outcomes()) == {CallOutcome.UNUSED}


async def test_edge_case_12_empty_dataset(here: House):
    """A batch of no cases is over when it is accepted, and stays so."""
    await here.submit("empty", 0)
    assert await here.batch("empty") == ("completed", True)
    await here.run_cycle(2)
    assert (await here.batch("empty"), await here.keys("eval:*empty*")) == (("completed", True), [])


# -- judging


@virtually
async def test_edge_case_13_eval_after_task_failure():
    """An evaluation without an answer is not scored."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("judge")))
    harness.target.how = raising(Permanent("refused", "no such model"))
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await until(harness.is_drained)
    assert await harness.story("e-1") == "queued provisioning running failed"
    assert harness.evaluators["judge"].judged == []


async def test_edge_case_14_eval_uses_different_provider(here: House):
    """OpenAI answers and Anthropic judges: each has its own lane, and gets its own calls."""
    async with provider(pass_rate=1.0) as sim:
        model = {"type": "openai", "model": "gpt-4o-mini", "account": "answers"}
        target = parse_target({**model, "base_url": f"{sim.base_url}/v1"})
        judge = {
            "type": "llm_judge",
            "model": "anthropic/claude-haiku-4-5",
            "rubric": "Is {output} right?",
            "base_url": sim.base_url,
            "account": "judges",
        }
        spec = metered(BatchSpec("two", (target,), evaluators=(parse_evaluator(judge),)))
        await here.submit("two", 6, spec=spec)
        await worked_off(here, "two")
        assert sim.stats.of("/v1/chat/completions", 200) == 6
        assert sim.stats.of("/v1/messages", 200) == 6
    assert await here.states("two") == ["1 completed"] * 6
    lanes = [key.partition("{")[2].split(":")[:2] for key in await here.keys("eval:lane:*")]
    assert sorted(lanes) == [["anthropic", "judges"], ["openai", "answers"]]


# -- time


async def test_edge_case_15_clock_skew(redis_url: str, monkeypatch: pytest.MonkeyPatch):
    """Executors whose clocks differ by an hour share one rate: the server's clock decides."""
    async with connect(redis_url) as redis:
        lanes, policy = RedisLanes(redis), LanePolicy(rpm=6)
        grants = []
        for number, skew in enumerate((0, 3_600, -3_600)):
            monkeypatch.setattr(time, "time", lambda skew=skew: 1_700_000_000.0 + skew)
            ask = AcquireRequest("shared", f"executor-{number}", 0, 10, 100.0, policy)
            grants.append((await lanes.acquire([ask]))[0])
        (seconds, _), [view] = await redis.time(), await lanes.views(["shared"])
    assert sum(grant.granted for grant in grants) <= 1
    assert view.until == pytest.approx(seconds, abs=120)


@pytest.mark.parametrize(("seconds", "end"), [(1_000.0, p.Completed), (300.0, p.TimedOut)])
@virtually
async def test_edge_case_16_very_slow_tasks(seconds, end):
    """A call of ten minutes within its time-out keeps its task; beyond it, the call is cancelled."""
    harness = Harness(replace(LONG, timeout=seconds))

    async def take_long(_question: TargetRequest) -> TargetReply:
        await asyncio.sleep(600)
        return TargetReply(REPLY)

    harness.target.how = take_long
    await harness.register()
    await harness.queue("e-1", opening=p.Queued(case=CASE, retries=0))
    async with harness.executor(), harness.executor():
        await asyncio.sleep(1_200)
        assert await harness.is_drained()
    assert isinstance(await harness.last("e-1"), end)
    assert len(harness.target.asked) == 1


# -- concurrency


@virtually
async def test_edge_case_17_lost_callback():
    """A failure after the answer ends its executor with an error; the next one makes no second call."""
    harness = Harness()

    class Broken(type(harness.tasks)):  # type: ignore[misc]  # whichever queue the harness has
        is_broken = True

        async def ack(self, *args: Any, **kwargs: Any) -> Any:
            if self.is_broken:
                raise RuntimeError("a bug")
            return await super().ack(*args, **kwargs)

    harness.tasks = Broken(harness.clock)
    await harness.register()
    await harness.queue("e-1")
    with pytest.raises(RuntimeError, match="a bug"):
        async with harness.executor() as executor:
            await until(executor._stop_requested.is_set, timeout=60)
    harness.tasks.is_broken = False
    async with harness.executor():
        await until(harness.is_drained, timeout=200)
    assert len(harness.target.asked) == 1
    assert await harness.story("e-1") == "queued provisioning running responded completed"
