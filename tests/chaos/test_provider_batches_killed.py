"""A coordinator that is killed ten times while it submits, looks after and collects provider batches."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from domain.batch_spec import BatchFallback, BatchSpec, TargetSpec
from scoreline.provider_sim.simulator import Simulator
from tests.chaos.children import Child
from tests.chaos.provider_coordinator import SETTINGS, coordinate
from tests.extras import require
from tests.integration.coordinator.coordinating import House, house
from tests.provider import provider
from tests.waiting import until

require("anthropic")

B = "nightly"
CASES = 240
KILLS = 10
SEED = 1
MOVES = 5
"""How far a coordinator comes at most before it is killed: calls of the provider, and groups recorded."""
CLAUDE: dict[str, Any] = {"model": "claude-sonnet-4-5", "prices": {"input": 10.0, "output": 100.0}}
SPEC = BatchSpec("a batch", (TargetSpec("anthropic", "claude", CLAUDE),), batch_api=BatchFallback.RESUBMIT)
ANSWERS = "SELECT count(*), count(DISTINCT evaluation_id) FROM events WHERE type = 'responded'"
PAID = "SELECT sum((event::jsonb #>> '{data,cost_usd}')::numeric) FROM events WHERE type = 'responded'"


@pytest.fixture
async def sim() -> AsyncIterator[Simulator]:
    async with provider(mode="echo", batch_seconds=0.1) as lent:
        yield lent


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url, provider=SETTINGS.provider) as lent:
        yield lent


async def test_ten_kills_cost_no_second_submission(here: House, sim: Simulator, tmp_path: Path) -> None:
    """Wherever it dies, each evaluation is asked once, answered once and paid for once."""
    await here.submit(B, CASES, spec=SPEC)
    environ = {"ANTHROPIC_API_KEY": "sim", "ANTHROPIC_BASE_URL": sim.base_url}
    rng, states = Random(SEED), set()
    for _ in range(KILLS):
        child = Child(coordinate, here.site, environ, log=tmp_path / "coordinator.log")
        enough = await moves(here, sim) + rng.randint(1, MOVES)
        await until(partial(has_come, here, sim, enough), 60)
        await child.kill()
        states |= {state for (state,) in await here.ask("SELECT state FROM provider_batches")}
    assert (await answers(here))[0] < CASES, "it was over before it was killed for the last time"
    last = Child(coordinate, here.site, environ, log=tmp_path / "coordinator.log")
    await until(lambda: all_answered(here), 60)
    await last.kill()
    assert states >= {"submitted", "ended", "collected"}
    assert await answers(here) == (CASES, CASES)
    assert (sim.stats.batch_requests, len(sim.stats.asked_in_batches)) == (CASES, CASES)
    assert await here.ask("SELECT sum(cost_usd) FROM batch_progress") == await here.ask(PAID)


async def moves(here: House, sim: Simulator) -> int:
    """Return how far it has come."""
    calls = sum(number for (endpoint, _), number in sim.stats.calls.items() if "batches" in endpoint)
    return calls + (await answers(here))[0] // SETTINGS.provider.page


async def has_come(here: House, sim: Simulator, enough: int) -> bool:
    return await moves(here, sim) >= enough


async def answers(here: House) -> tuple[int, int]:
    """Count the answers on record, and the evaluations that have one."""
    [(many, different)] = await here.ask(ANSWERS)
    return many, different


async def all_answered(here: House) -> bool:
    open_ = "SELECT FROM provider_batches WHERE state NOT IN ('collected', 'abandoned')"
    return (await answers(here))[1] == CASES and not await here.ask(open_)
