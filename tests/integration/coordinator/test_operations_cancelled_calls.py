"""A batch that is cancelled while calls are in flight."""

from collections.abc import AsyncIterator

import pytest

from domain.ids import evaluation_id
from eventlog.event_queue import AttemptLost
from tests.integration.coordinator.coordinating import ANSWER, House, house
from tests.waiting import until


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url) as made:
        yield made


async def test_a_cancelled_call_is_fenced_and_its_answer_kept_as_late(here: House):
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
