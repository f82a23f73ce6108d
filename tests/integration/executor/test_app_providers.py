"""A real executor against providers that fail, truncate and send invalid replies."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from domain.batch_spec import BatchSpec
from domain.ids import evaluation_id
from executor.app import run_executor
from executor.contract import ExecutionEnvironment
from executor.registry import parse_evaluator, parse_target
from executor.settings import ExecutorSettings, RedisSettings
from scoreline.submit.spec.metering import metered
from tests.integration.coordinator.coordinating import House, house
from tests.provider import provider
from tests.waiting import until

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


async def test_a_case_that_breaks_the_provider_becomes_a_dead_letter(here: House):
    """A case that breaks the provider each time uses all its retries, then becomes a dead letter."""
    async with provider(server_error=1.0) as sim:
        await here.submit("poison", 1, spec=model_spec(sim.base_url, retries=2))
        await worked_off(here, "poison")
        assert sim.stats.of("/v1/messages", 500) == 3
    assert await here.states("poison") == ["3 failed"]
    assert (await here.error("poison", 1))["kind"] == "http_500"
    assert await here.batch("poison") == ("completed", True)


async def test_a_truncated_stream_is_retried_whole(here: House):
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


async def test_a_web_page_is_no_answer(here: House):
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


async def test_a_judge_of_another_provider_has_its_own_lane(here: House):
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
