"""Interruption of a run: a flag that every wait checks, so that no signal is lost."""

import asyncio
import gc
import os
import signal
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from random import Random

import psycopg
import pytest
from psycopg import AsyncConnection
from psycopg.errors import QueryCanceled
from rich.console import Console

from scoreline.local.fleet import Fleet
from scoreline.local.interruption import SIGNALS, InterruptedRun, Interruption
from scoreline.local.supervisor import BatchSupervisor, RunRequest
from scoreline.reports.batch_poller import BatchPoller
from scoreline.reports.fleet_status import fleet_reader
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.startup_interrupt import INTERRUPTED
from tests.integration.scoreline.batch_harness import harness
from tests.waiting import until

INTERRUPTS = 100
LATE = 20.0
"""Seconds within which an interrupted run must have ended, on a busy machine."""
RUN = "run-1"
AGAIN = "UPDATE batches SET state = 'running', reason = '', run_id = 'run-1'"
BLOCKED = (
    "SELECT 1 FROM pg_stat_activity WHERE application_name = 'scoreline batch' AND wait_event_type = 'Lock'"
)
STATE = "SELECT state, reason FROM batches"


# redis-py leaves a connection whose connect was cancelled to the garbage collector, which warns of it.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect such connections here, not in a later test."""
    yield
    gc.collect()


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that starts no process and queries without a pause, so there is always a query to interrupt."""
    monkeypatch.setattr("scoreline.local.fleet.start", lambda _fleet, _manager: None)
    monkeypatch.setattr("scoreline.local.supervisor.POLL_INTERVAL", 0.0)


def driving(servers: Servers, root: Path, interruption: Interruption) -> BatchSupervisor:
    """A run of the batch, with its own run id."""
    wanted = RunRequest("nightly", Fleet("nightly", run_id=RUN))
    console = Console(file=StringIO(), width=200)
    return BatchSupervisor(wanted, servers, Settings(data_dir=root), console, interruption)


@pytest.mark.usefixtures("restless")
@pytest.mark.timeout(300)
async def test_no_interrupt_is_lost(redis_url: str, postgres_url: str, tmp_path: Path) -> None:
    """A hundred signals at random moments, most within a query: each stops the run and pauses the batch."""
    random, servers = Random(20), Servers(redis_url, postgres_url)
    loop = asyncio.get_running_loop()
    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["queued"] * 3)
        for _ in range(INTERRUPTS):
            await here.place.conn.execute(AGAIN)
            number = random.choice(SIGNALS)
            with Interruption() as interruption:
                run = driving(servers, tmp_path, interruption)
                loop.call_later(random.uniform(0, 0.1), os.kill, os.getpid(), number)
                code = await asyncio.wait_for(run.until_over(), LATE)
            [found] = await (await here.place.conn.execute(STATE)).fetchall()
            assert (code, found) == (INTERRUPTED, ("paused", f"interrupted by {number.name}"))


@pytest.mark.usefixtures("restless")
async def test_a_run_that_was_replaced_pauses_nothing(
    redis_url: str, postgres_url: str, tmp_path: Path
) -> None:
    """Another command has taken over the batch: this one exits with 4, also after an interrupt."""
    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["queued"])
        await here.place.conn.execute("UPDATE batches SET run_id = 'run-2'")
        with Interruption() as interruption:
            assert await driving(Servers(redis_url, postgres_url), tmp_path, interruption).until_over() == 4
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGTERM)
            run = driving(Servers(redis_url, postgres_url), tmp_path, interruption)
            assert await run.until_over() == INTERRUPTED
        assert await (await here.place.conn.execute(STATE)).fetchall() == [("running", "")]
    assert isinstance(run.console.file, StringIO)
    assert "nightly is served by another command now" in run.console.file.getvalue()


@pytest.mark.usefixtures("restless")
async def test_a_batch_that_completed_before_its_pause_is_reported(
    redis_url: str, postgres_url: str, tmp_path: Path
) -> None:
    """The interrupt came first, and nothing is left to pause: the run ends like any finished batch."""
    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["passed"] * 3)
        await here.change("nightly", f"state = 'completed', finished_at = now(), run_id = '{RUN}'")
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
            run = driving(Servers(redis_url, postgres_url), tmp_path, interruption)
            assert await run.run() == 0
    assert isinstance(run.console.file, StringIO)
    assert "completed 3 of 3" in run.console.file.getvalue()


@pytest.mark.usefixtures("restless")
async def test_an_interrupt_ends_a_run_while_postgres_hangs(
    redis_url: str, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query that never returns delays neither message nor exit; the output names what is unknown."""
    monkeypatch.setattr("scoreline.local.run_pause.TIMEOUT", 0.5)
    monkeypatch.setattr("scoreline.local.supervisor.ABANDONED", 0.2)

    async def waiting() -> bool:
        with psycopg.connect(postgres_url) as conn:
            return conn.execute(BLOCKED).fetchone() is not None

    async with harness(postgres_url, redis_url) as here:
        await here.submit("nightly", ["queued"])
        with Interruption() as interruption:
            run = driving(Servers(redis_url, postgres_url), tmp_path, interruption)
            async with await AsyncConnection.connect(postgres_url) as other:
                await other.execute("LOCK TABLE batches IN ACCESS EXCLUSIVE MODE")
                running = asyncio.create_task(run.until_over())
                await until(waiting)
                os.kill(os.getpid(), signal.SIGINT)
                assert await asyncio.wait_for(running, LATE) == INTERRUPTED
    assert isinstance(run.console.file, StringIO)
    assert "could not be marked as paused: PostgreSQL does not answer" in run.console.file.getvalue()


async def no_outage(_seconds: float) -> None:
    """End a poll that waits for the server: it would go on for ever, and so would the test."""
    raise AssertionError("the poller waits for an outage to end")


async def test_a_cancelled_watch_ends_though_its_query_fails(
    redis_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancelled query may raise its own error instead of the cancellation: that is no outage."""
    querying = asyncio.Event()

    async def cancelled_query(*_: object, every_row: bool) -> None:
        querying.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise QueryCanceled(f"canceling statement due to user request, {every_row=}")

    monkeypatch.setattr("scoreline.reports.batch_poller.read_batch_view", cancelled_query)
    async with fleet_reader(redis_url) as fleet:
        poller = BatchPoller(postgres_url, "nightly", fleet, lambda _: None, pause=no_outage)
        watching = asyncio.create_task(poller.until_over(lambda _: None))
        await querying.wait()
        watching.cancel()
        done, _ = await asyncio.wait({watching}, timeout=LATE)
    assert done
    assert watching.cancelled()


def test_an_interrupt_before_anything_is_accepted_raises() -> None:
    """Submission checks the flag at every evaluation, and leaves no row behind."""
    with Interruption() as interruption:
        interruption.check()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(InterruptedRun):
            interruption.check()


def test_signal_handlers_are_restored() -> None:
    """Earlier handlers are restored, and an ignored SIGHUP, as under nohup, stays ignored throughout."""
    before = [signal.getsignal(number) for number in SIGNALS]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            assert interruption.received is None
    finally:
        signal.signal(signal.SIGHUP, before[-1])
    assert [signal.getsignal(number) for number in SIGNALS] == before


async def test_a_repeated_hang_up_does_not_end_the_pause() -> None:
    """A shell that loses its terminal repeats SIGHUP: only SIGINT and SIGTERM end the process at once."""
    ended = []
    with Interruption() as interruption, interruption.announced(lambda: None, lambda: ended.append(True)):
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        assert (interruption.received, ended) == (signal.SIGHUP, [])
