"""Batches whose executors crash, that are larger than Redis should hold, or that are empty."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integration.coordinator.coordinating import ANSWER, House, house
from tests.unit.executor.harness import Harness, virtually
from tests.waiting import until


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url) as made:
        yield made


async def test_a_crashed_executor_is_replaced_and_its_paid_answer_reused(here: House):
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


async def test_only_a_window_of_a_large_batch_is_in_redis(redis_url: str, postgres_url: str):
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


async def test_an_empty_dataset_is_over_at_once(here: House):
    """A batch of no cases is over when it is accepted, and stays so."""
    await here.submit("empty", 0)
    assert await here.batch("empty") == ("completed", True)
    await here.run_cycle(2)
    assert (await here.batch("empty"), await here.keys("eval:*empty*")) == (("completed", True), [])


@virtually
async def test_a_failure_after_the_answer_makes_no_second_call():
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
