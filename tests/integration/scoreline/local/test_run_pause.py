"""The pause of a run that must stop: on record while the run serves its batch, and within bounds."""

from scoreline.local.run_pause import (
    PauseOutcome,
    pause_at_once,
    pause_on_record,
    read_outcome,
    record_unrecorded,
)
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from tests.integration.scoreline.batch_harness import harness

NOWHERE = Servers("redis://127.0.0.1:1", "postgresql://127.0.0.1:1/x")
PAUSED = PauseOutcome("paused", "interrupted", ended=1, total=2)
STATE = "SELECT state, reason FROM batches"


async def test_a_batch_is_paused_by_the_run_that_serves_it(redis_url: str, postgres_url: str) -> None:
    """With an event loop, and without one; another run changes nothing."""
    servers = Servers(redis_url, postgres_url)
    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["passed", "queued"])
        await here.change("nightly", "run_id = 'run-1'")
        replaced = pause_at_once(servers, "nightly", "run-2", reason="interrupted")
        assert replaced == PauseOutcome("running", run_is_replaced=True, ended=1, total=2)
        assert pause_at_once(servers, "nightly", "run-1", reason="interrupted") == PAUSED
        await here.change("nightly", "state = 'running', reason = ''")
        paused = await pause_on_record(servers, Settings(), "nightly", "run-1", reason="interrupted")
        assert paused == PAUSED
        assert await here.place.ask(STATE) == [("paused", "interrupted")]


async def test_a_batch_is_over_once_its_end_is_recorded(redis_url: str, postgres_url: str) -> None:
    """Until then a completed batch still runs; one that another run serves is not over for this one."""
    servers = Servers(redis_url, postgres_url)
    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["passed"])
        found = []
        for change in ("state = 'completed', run_id = 'run-1'", "finished_at = now()", "run_id = 'run-2'"):
            await here.change("nightly", change)
            outcome = await read_outcome(servers, "nightly", "run-1")
            assert outcome
            found.append((outcome.status, outcome.is_over))
    assert found == [("running", False), ("completed", True), ("completed", False)]


async def test_an_unknown_batch_has_no_outcome(redis_url: str, postgres_url: str) -> None:
    """It was never accepted."""
    async with harness(postgres_url, redis_url):
        assert await read_outcome(Servers(redis_url, postgres_url), "nightly", "run-1") is None


async def test_servers_that_do_not_answer_give_no_outcome() -> None:
    """The run ends all the same, and prints that the state is unknown."""
    assert pause_at_once(NOWHERE, "nightly", "run-1", reason="") is None
    assert await read_outcome(NOWHERE, "nightly", "run-1") is None


async def test_spend_that_cannot_be_recorded_stops_no_command() -> None:
    """It is recorded at the resume."""
    await record_unrecorded(NOWHERE, Settings(), "nightly")
