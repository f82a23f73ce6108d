"""Openings of attempts on real servers: each is committed once, and published after a crash."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from domain.ids import evaluation_id
from eventlog.event_queue import AttemptLost
from tests.integration.coordinator.coordinating import ANSWER, House, house


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url) as made:
        yield made


async def test_overlapping_coordinators_open_each_attempt_once(here: House) -> None:
    """Three run cycles at once, through crashes and retries: every attempt is opened once."""
    others = [here.coordinator, here.another(), here.another()]
    await here.submit("nightly", 20)
    outcomes = {1: "dies", 2: "retrying", 3: "failed", 4: "answers and dies"}
    for _ in range(4):
        await asyncio.gather(*(each.run_cycle() for each in others))
        await here.work("nightly", outcomes)
        outcomes = {}
    await asyncio.gather(*(each.run_cycle() for each in others))
    assert await here.states("nightly") == [
        "2 completed", "2 completed", "1 failed", "2 completed", *["1 completed"] * 16,
    ]  # fmt: skip
    assert await here.batch("nightly") == ("completed", True)
    events = await here.ask("SELECT type FROM batch_events WHERE batch_id = 'nightly' ORDER BY number")
    assert events == [("accepted",), ("finished",)]
    await here.run_cycle()
    assert await here.queues.batch_registry.list() == []


async def test_a_terminal_event_that_was_not_published_is_published_later(here: House) -> None:
    """A coordinator crashed between Postgres and Redis: the next one fences the owner."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "goes on"})
    key = evaluation_id("nightly", 1)
    names = await here.keys(f"eval:*{key}")
    bodies = [await here.log.redis.dump(name) for name in names]
    await here.operator.cancel("nightly")
    # As if the terminal event had never been appended, nor marked.
    for name, body in zip(names, bodies, strict=True):
        await here.log.redis.restore(name, 0, body or b"", replace=True)
    await here.alter("UPDATE evaluations SET published = false")
    await here.run_cycle()
    here.owned[key].record(ANSWER)
    with pytest.raises(AttemptLost):
        await here.owned[key].acknowledged()
    assert await here.ask("SELECT published FROM evaluations") == [(True,)]
