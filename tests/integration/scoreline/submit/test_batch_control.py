"""Pause and cancel of a batch from the command line: what is printed, and what is refused."""

import asyncio

import pytest

from scoreline.command_error import CommandError
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.batch_control import current_user, run_cancel, run_pause
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


def test_a_user_without_a_name_is_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers run with user ids that no table has."""
    assert current_user() != ""

    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr("scoreline.submit.batch_control.getuser", unknown)
    assert current_user() == "operator"
