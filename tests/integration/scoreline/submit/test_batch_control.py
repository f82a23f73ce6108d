"""Pause and cancel of a batch from the command line: what is printed, and what is refused."""

import asyncio

import pytest

from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.batch_control import run_cancel, run_pause
from tests.integration.scoreline.batch_harness import harness

STATE = "SELECT state, reason FROM batches"


async def test_a_paused_batch_has_its_reason_and_its_way_back(
    redis_url: str, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The state is recorded; the output names the command that continues."""
    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["queued"])
        servers = Servers(redis_url, postgres_url)
        await asyncio.to_thread(run_pause, servers, Settings(), "nightly", reason="maintenance")
        assert await here.place.ask(STATE) == [("paused", "maintenance")]
    assert "nightly is paused" in (printed := capsys.readouterr().err)
    assert printed.endswith("To continue: scoreline batch resume nightly\n")


async def test_a_cancelled_batch_counts_what_ran(
    redis_url: str, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An evaluation that ended before is not among the cancelled ones."""
    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["passed", "cancelled"])
        servers = Servers(redis_url, postgres_url)
        await asyncio.to_thread(run_cancel, servers, Settings(), "nightly", reason="")
        assert [state for state, _ in await here.place.ask(STATE)] == ["cancelled"]
    assert "nightly is cancelled: 1 of 2 evaluations ran, 1 were cancelled" in capsys.readouterr().err
