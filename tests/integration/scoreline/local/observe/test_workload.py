"""The workload to observe: its waits have a deadline, and what is left running is cancelled."""

from io import StringIO
from typing import cast

import pytest
from rich.console import Console

from scoreline.local.observe import workload
from scoreline.local.observe.workload import TooSlow, Workload
from scoreline.provider_sim.simulator import Simulator
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from tests.integration.scoreline.batch_harness import harness

STATE = "SELECT state, reason FROM batches"


def work(redis_url: str, postgres_url: str, **batches: str) -> Workload:
    """Make a workload without a provider."""
    console = Console(file=StringIO())
    servers, provider = Servers(redis_url, postgres_url), cast("Simulator", None)
    return Workload(servers, Settings(), provider, console, lambda _: None, "run-1", **batches)


async def test_work_that_is_not_done_in_time_is_an_error(
    redis_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No fleet runs here, so that the first batch never ends."""
    monkeypatch.setattr(workload, "WORKING", 0.0)
    async with harness(postgres_url, redis_url):
        doing = work(redis_url, postgres_url)
        with pytest.raises(TooSlow, match="not done within 0 s"):
            await doing.do()
    assert doing.demo
    assert doing.by_batch == ""


async def test_only_a_batch_that_was_left_running_is_cancelled(redis_url: str, postgres_url: str) -> None:
    """A workload that failed before has none."""
    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["cancelled"])
        await work(redis_url, postgres_url).cancel()
        assert await here.place.ask(STATE) == [("running", "")]
        await work(redis_url, postgres_url, running="nightly").cancel()
        assert await here.place.ask(STATE) == [("cancelled", "enough was seen")]
