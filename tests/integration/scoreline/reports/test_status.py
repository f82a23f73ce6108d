"""`scoreline batch list|status|dlq` on real servers, as text and as JSON."""

import asyncio
import json
import signal
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE

import pytest

from scoreline.command_error import CommandError
from tests.builders import history
from tests.integration.place import life
from tests.integration.scoreline.batch_harness import Harness, spec
from tests.integration.scoreline.reports.batch_states import OVER, POLLED
from tests.integration.worker import SCORELINE, environment
from tests.waiting import until

PROMISED = [
    "batch_id", "status", "total", "completed", "passed", "failed", "timed_out", "cancelled", "pending",
    "retried", "bridged", "score", "duration_s", "tokens", "cost_usd",
]  # fmt: skip


async def test_status_is_one_object_with_the_documented_keys_first(here: Harness) -> None:
    """The documented keys come first, in their order; further keys follow."""
    await here.submit(
        "nightly", ["passed", "failed", "dead", "timed_out", "retried", "cancelled", "queued"]
    )
    [found] = await here.documents("status", "nightly")
    assert list(found)[: len(PROMISED)] == PROMISED
    counted = {name: found[name] for name in PROMISED[:11]}
    assert counted == {
        "batch_id": "nightly", "status": "running", "total": 7, "completed": 3, "passed": 2, "failed": 1,
        "timed_out": 1, "cancelled": 1, "pending": 1, "retried": 1, "bridged": 0,
    }  # fmt: skip
    assert found["score"] == pytest.approx(2 / 3)
    assert (found["cost_usd"], found["executors"]) == (pytest.approx(1.0), [])
    assert found["waiting"] == {"queued": 1, "unpublished": 0}


@pytest.mark.parametrize(
    ("words", "change", "code", "status"),
    [
        (["passed", "queued"], "state = 'running'", 0, "running"),
        (["passed"], "state = 'completed'", 0, "running"),
        (["passed"], OVER, 0, "completed"),
        (["passed", "dead"], OVER, 3, "completed"),
        (["timed_out"], OVER, 3, "completed"),
        (["passed", "queued"], "state = 'paused', reason = 'the budget is spent'", 4, "paused"),
        (["cancelled"], "state = 'cancelled', finished_at = now()", 4, "cancelled"),
        (["dead"], "state = 'expired', finished_at = now()", 4, "expired"),
    ],
)
async def test_the_exit_code_follows_the_status(
    here: Harness, words: list[str], change: str, code: int, status: str
) -> None:
    """Each status of a batch has its exit code."""
    await here.submit("nightly", words)
    await here.change("nightly", change)
    ran = await here.run("status", "nightly", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["status"]) == (code, status)


async def test_the_status_of_a_stuck_batch_has_the_reasons(here: Harness) -> None:
    """The status reports missing executors, due retries, unmoved evaluations, and what to type."""
    await here.submit(
        "nightly", ["passed", "queued", "queued+provisioning+running+retrying", "queued+provisioning"]
    )
    await here.place.alter(
        "UPDATE evaluations SET updated_at = now() - interval '5 minutes' WHERE evaluation_id = %s",
        "nightly.00000004",
    )
    ran = await here.run("status", "nightly")
    assert ran.exit_code == 0, ran.exception
    for line in (
        "running 1 of 4 (25.0%)",
        "no end in sight",
        "1 provisioning, 1 queued, 1 retrying",
        "No executor is alive. To continue it here: scoreline batch resume nightly;",
        "1 wait for a retry; the first has been due for",
        "Longest without an event: nightly.00000004, provisioning for 5 min 0 s",
        "scoreline batch status nightly --watch",
    ):
        assert line in ran.stdout
    await here.change("nightly", "state = 'paused', reason = 'the budget is spent'")
    paused = (await here.run("status", "nightly")).stdout
    assert "Paused: the budget is spent. To continue: scoreline batch resume nightly" in paused
    assert "No executor" not in paused
    assert "to go" not in paused


async def test_serial_groups_and_unpublished_evaluations_are_reported(here: Harness) -> None:
    """Evaluations that wait for their turn are counted apart from stuck ones."""
    await here.submit("nightly", ["queued", "queued", "queued"])
    await here.place.conn.execute(
        "INSERT INTO serial_links (evaluation_id, batch_id, follows)"
        " VALUES ('nightly.00000002', 'nightly', 'nightly.00000001')"
    )
    await here.change("nightly", "published_to = 'nightly.00000002'")
    text = (await here.run("status", "nightly")).stdout
    assert "1 wait for an earlier evaluation of their serial group." in text
    assert "waiting: 2 queued, 1 not published" in text
    await here.change("nightly", "published_to = ''")
    assert "Is a coordinator running?" in (await here.run("status", "nightly")).stdout


async def test_variants_have_a_row_each(here: Harness) -> None:
    """A batch with two variants has a table with a row for each prompt and target."""
    await here.submit(
        "nightly", ["passed", "failed"], about=spec("small", "https://me:hunter2@large"), variants=2
    )
    await here.place.alter(
        "UPDATE scorecards SET verdict = 'failed', score = 0.5 WHERE evaluation_id = 'nightly.00000002'"
    )
    [found] = await here.documents("status", "nightly")
    assert [(v["target"], v["passed"], v["score"]) for v in found["variants"]] == [
        ("small", 1, 0.5), ("https://me:***@large", 0, 0.25),
    ]  # fmt: skip
    assert "50.0%" in (await here.run("status", "nightly")).stdout


async def test_watch_runs_until_the_batch_is_over(here: Harness) -> None:
    """`--watch --json` prints one object per line; the last one and the exit code are final."""
    await here.submit("nightly", ["passed", "queued+provisioning+running"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch", "--json"))
    await until(lambda: here.place.ask(POLLED))
    await here.place.store(history("failed", evaluation_id="nightly.00000002", batch_id="nightly", first=3))
    await here.change("nightly", OVER)
    ran = await watching
    seen = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (seen[0]["pending"], seen[-1]["pending"], seen[-1]["status"]) == (1, 0, "completed")
    assert ran.exit_code == 3


async def test_watch_survives_a_lost_connection(here: Harness) -> None:
    """A terminated connection is reported on stderr, and polling continues."""
    await here.submit("nightly", ["passed", "queued"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch", "--json"))
    await until(lambda: here.place.ask(POLLED))
    await here.place.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'scoreline batch'"
    )
    await until(lambda: here.place.ask(POLLED))
    await here.change("nightly", "state = 'cancelled', finished_at = now()")
    ran = await watching
    assert "PostgreSQL does not answer; waiting for it." in ran.stderr
    assert "PostgreSQL answers again." in ran.stderr
    assert (ran.exit_code, json.loads(ran.stdout.splitlines()[-1])["status"]) == (4, "cancelled")


async def test_interrupted_watch_ends_with_130(here: Harness) -> None:
    """SIGINT ends the command with 130, without a traceback."""
    await here.submit("nightly", ["queued"])
    urls = {"EVAL_REDIS_URL": here.redis_url, "EVAL_POSTGRES_URL": here.place.url}
    process = await create_subprocess_exec(
        SCORELINE,
        "batch",
        "status",
        "nightly",
        "--watch",
        env=environment(**urls),
        stdout=PIPE,
        stderr=PIPE,
    )
    await until(lambda: here.place.ask(POLLED), 60)
    process.send_signal(signal.SIGINT)
    _, problem = await process.communicate()
    assert (process.returncode, b"Traceback" in problem) == (130, False)


async def test_watch_without_a_terminal_prints_plain_lines(here: Harness) -> None:
    """Without a terminal, progress is plain lines without escape sequences."""
    await here.submit("nightly", ["passed", "queued"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch"))
    await until(lambda: here.place.ask(POLLED))
    await here.change("nightly", "state = 'paused'")
    ran = await watching
    assert "running 1 of 2 (50.0%)" in ran.stdout
    assert "Paused: requested by an operator." in ran.stdout
    assert ("\x1b" in ran.stdout, ran.exit_code) == (False, 4)


@pytest.mark.parametrize("flags", ["", "--json"])
@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">/dev/full", 1, "error: No space is left for the output; what was written of it is not whole.\n"),
        (">&-", 0, ""),
    ],
)
async def test_unwritable_output_is_no_traceback(
    here: Harness, flags: str, redirection: str, code: int, message: str
) -> None:
    """A full disk is reported as an error; a closed stdout is not."""
    await here.submit("nightly", ["passed"])
    process = await create_subprocess_exec(
        "sh", "-c", f'"$0" batch list {flags} {redirection}', SCORELINE, stderr=PIPE,
        env=environment(EVAL_REDIS_URL=here.redis_url, EVAL_POSTGRES_URL=here.place.url),
    )  # fmt: skip
    _, problem = await process.communicate()
    assert (process.returncode, problem.decode()) == (code, message)


async def test_an_external_batch_is_over_when_all_evaluations_ended(here: Harness) -> None:
    """No coordinator closes an external batch, so its counters decide."""
    await here.place.store(life(1))
    ran = await here.run("status", "batch-1", "--watch", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["status"]) == (0, "external")


@pytest.mark.parametrize("command", [("status",), ("dlq",), ("export", "-o", "-"), ("compare", "nightly")])
async def test_an_unknown_batch_is_reported_with_the_nearest_ids(
    here: Harness, command: tuple[str, ...]
) -> None:
    """Each command reports a typo in a batch id with the nearest id."""
    await here.submit("nightly", ["passed"])
    ran = await here.run(*command, "nigthly")
    assert isinstance(ran.exception, CommandError)
    assert str(ran.exception) == "There is no batch nigthly. Nearest: nightly"
