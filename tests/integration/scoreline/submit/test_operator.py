"""Operations on batches that are refused, or find a server away."""

import asyncio

import pytest

from scoreline.command_error import CommandError
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.batch_control import run_cancel, run_pause
from tests.integration.scoreline.batch_harness import harness

STATE = "SELECT state, reason FROM batches"


async def test_an_operation_that_is_refused_changes_nothing(redis_url: str, postgres_url: str) -> None:
    """A completed batch has nothing to pause, and an unknown id is named with those like it."""
    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["passed"])
        await here.change("nightly", "state = 'completed', finished_at = now()")
        servers = Servers(redis_url, postgres_url)
        for batch_id, error in (
            ("nightly", "nightly is completed: there is nothing to pause."),
            ("nigthly", "There is no batch nigthly. Nearest: nightly"),
        ):
            with pytest.raises(CommandError) as refusal:
                await asyncio.to_thread(run_pause, servers, Settings(), batch_id, reason="")
            assert str(refusal.value) == error
        assert await here.place.ask(STATE) == [("completed", "")]


async def test_a_server_that_went_away_is_an_error_with_the_advice_to_repeat(postgres_url: str) -> None:
    """The command is idempotent."""
    async with harness(postgres_url, "redis://127.0.0.1:1") as here:
        await here.submit("nightly", ["queued"])
        servers = Servers("redis://127.0.0.1:1", postgres_url)
        with pytest.raises(CommandError, match="The command is idempotent: try again"):
            await asyncio.to_thread(run_cancel, servers, Settings(), "nightly", reason="")
