"""`scoreline batch list|status|dlq` on real servers: what people and machines are told of a batch."""

import asyncio
import json
import re
import signal
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from functools import partial

import pytest
from redis.asyncio import Redis

from scoreline.problem import Problem
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from tests.builders import history
from tests.integration.place import life
from tests.integration.scoreline.batch_stage import WILD, Stage, spec, stage
from tests.integration.worker import SCORELINE, environment
from tests.waiting import until

PROMISED = [
    "batch_id", "status", "total", "completed", "passed", "failed", "timed_out", "cancelled", "pending",
    "retried", "bridged", "score", "duration_s", "tokens", "cost_usd",
]  # fmt: skip
LOOKED = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'scoreline batch' AND query = 'COMMIT'"
LOOKED_AFTER = LOOKED.replace("SELECT 1", "SELECT state_change") + " AND state_change > %s"
FEWER = (
    "UPDATE batch_progress SET failed = failed - 1"
    " WHERE (batch_id, shard) IN (SELECT batch_id, shard FROM batch_progress WHERE failed > 0 LIMIT 1)"
)
OVER = "state = 'completed', finished_at = accepted_at + interval '90 seconds'"


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Stage]:
    async with stage(postgres_url, redis_url) as made:
        yield made


async def test_status_is_one_object_with_the_promised_keys_first(here: Stage) -> None:
    """Whatever else is added comes after them."""
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
async def test_exit_code_says_how_it_stands(
    here: Stage, words: list[str], change: str, code: int, status: str
) -> None:
    """A script needs no more than the exit code."""
    await here.submit("nightly", words)
    await here.change("nightly", change)
    ran = await here.run("status", "nightly", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["status"]) == (code, status)


async def test_stuck_batch_says_why(here: Stage) -> None:
    """Nobody there, retries to wait for, what has not moved, and how it would go on."""
    await here.submit(
        "nightly", ["passed", "queued", "queued+provisioning+running+retrying", "queued+provisioning"]
    )
    await here.place.alter(
        "UPDATE evaluations SET updated_at = now() - interval '5 minutes' WHERE evaluation_id = %s",
        "nightly.00000004",
    )
    ran = await here.run("status", "nightly")
    assert ran.exit_code == 0, ran.exception
    for said in (
        "running 1 of 4 (25.0%)",
        "no end in sight",
        "1 provisioning, 1 queued, 1 retrying",
        "No executor is alive. To go on with it here: scoreline batch resume nightly;",
        "1 wait to be tried again; the first has been due for",
        "Unmoved for longest: nightly.00000004, provisioning for 5 min 0 s",
        "scoreline batch status nightly --watch",
    ):
        assert said in ran.stdout
    await here.change("nightly", "state = 'paused', reason = 'the budget is spent'")
    paused = (await here.run("status", "nightly")).stdout
    assert "Paused: the budget is spent. To go on: scoreline batch resume nightly" in paused
    assert "No executor" not in paused
    assert "to go" not in paused


async def test_serial_groups_and_what_is_not_published_are_named(here: Stage) -> None:
    """What waits for its turn is told from what is stuck."""
    await here.submit("nightly", ["queued", "queued", "queued"])
    await here.place.conn.execute(
        "INSERT INTO serial_links (evaluation_id, batch_id, follows)"
        " VALUES ('nightly.00000002', 'nightly', 'nightly.00000001')"
    )
    await here.change("nightly", "published_to = 'nightly.00000002'")
    said = (await here.run("status", "nightly")).stdout
    assert "1 wait for an earlier evaluation of their serial group." in said
    assert "waiting: 2 queued, 1 not published" in said
    await here.change("nightly", "published_to = ''")
    assert "Is a coordinator running?" in (await here.run("status", "nightly")).stdout


async def test_executors_are_shown_busy_or_not(here: Stage, redis_url: str) -> None:
    """Those of other projects do not count; a Redis that is away is said to be."""
    await here.submit("nightly", ["queued"])
    async with Redis.from_url(redis_url) as redis:
        executor_registry = RedisExecutorRegistry(redis)
        await executor_registry.heartbeat(
            ExecutorInstance("i-1", "elsewhere", slots=4, busy=1, project="other")
        )
        said = (await here.run("status", "nightly")).stdout
        assert "No executor takes tasks of project default; 1 work for others." in said
        await executor_registry.heartbeat(ExecutorInstance("i-2", "here", slots=4, busy=3))
    assert "1 executor (here), 3/4 slots busy" in (await here.run("status", "nightly")).stdout
    ran = await here.run("status", "nightly", EVAL_REDIS_URL="redis://127.0.0.1:1")
    assert ran.exit_code == 0
    assert "executors not known" in ran.stdout
    assert "does not answer (connection refused)" in ran.stdout


async def test_variants_are_told_apart(here: Stage) -> None:
    """A table with a row for each prompt and target, as soon as there are two."""
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


async def test_watch_goes_on_until_it_is_over(here: Stage) -> None:
    """One object a line, the last one of a finished batch; the exit code is that of the end."""
    await here.submit("nightly", ["passed", "queued+provisioning+running"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch", "--json"))
    await until(lambda: here.place.ask(LOOKED))
    await here.place.store(history("failed", evaluation_id="nightly.00000002", batch_id="nightly", first=3))
    await here.change("nightly", OVER)
    ran = await watching
    seen = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (seen[0]["pending"], seen[-1]["pending"], seen[-1]["status"]) == (1, 0, "completed")
    assert ran.exit_code == 3


async def test_watch_outlives_its_connection(here: Stage) -> None:
    """An outage is told, and the watch goes on where it was."""
    await here.submit("nightly", ["passed", "queued"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch", "--json"))
    await until(lambda: here.place.ask(LOOKED))
    await here.place.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'scoreline batch'"
    )
    await until(lambda: here.place.ask(LOOKED))
    await here.change("nightly", "state = 'cancelled', finished_at = now()")
    ran = await watching
    assert "PostgreSQL does not answer; waiting for it." in ran.stderr
    assert "PostgreSQL answers again." in ran.stderr
    assert (ran.exit_code, json.loads(ran.stdout.splitlines()[-1])["status"]) == (4, "cancelled")


async def test_interrupted_watch_ends_with_130(here: Stage) -> None:
    """Without a traceback."""
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
    await until(lambda: here.place.ask(LOOKED), 60)
    process.send_signal(signal.SIGINT)
    _, problem = await process.communicate()
    assert (process.returncode, b"Traceback" in problem) == (130, False)


async def test_watch_without_a_terminal_prints_plain_lines(here: Stage) -> None:
    """A log file gets a line now and then, and no escape sequence."""
    await here.submit("nightly", ["passed", "queued"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch"))
    await until(lambda: here.place.ask(LOOKED))
    await here.change("nightly", "state = 'paused'")
    ran = await watching
    assert "running 1 of 2 (50.0%)" in ran.stdout
    assert "Paused: somebody asked for it." in ran.stdout
    assert ("\x1b" in ran.stdout, ran.exit_code) == (False, 4)


async def test_alert_looks_once_and_changes_no_exit_code(here: Stage) -> None:
    """Without coordinator and executors a table names both alerts, each with the command to type."""
    await here.submit("nightly", ["passed", "queued"])
    ran = await here.run("status", "nightly", "--alert")
    assert ran.exit_code == 0
    assert re.search(
        r"critical +CoordinatorDown .*No coordinator holds the leader lock", ran.stdout, re.DOTALL
    )
    assert re.search(r"critical +AllWorkersDown .*0 executors are alive", ran.stdout, re.DOTALL)
    assert "→ scoreline worker start" in ran.stdout
    assert "running 1 of 2 (50.0%)" in ran.stdout
    *alerts, batch = await here.documents("status", "nightly", "--alert")
    assert {(each["alert"], each["state"]) for each in alerts} == {
        ("CoordinatorDown", "firing"), ("AllWorkersDown", "firing"),
    }  # fmt: skip
    assert batch["batch_id"] == "nightly"
    assert "ALERT" not in (await here.run("status", "nightly")).stdout


async def test_alert_is_told_when_it_begins_and_when_it_is_over(here: Stage) -> None:
    """Eleven dead letters are one too many; eleven that were taken back are none."""
    await here.submit("nightly", [*["dead"] * 11, "queued"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch", "--alert"))
    await until(lambda: here.place.ask(LOOKED))
    await here.place.alter(FEWER)
    # The look that was under way may not have seen it; the one after that has.
    before = await here.place.ask("SELECT clock_timestamp()")
    for _ in range(2):
        before = await until(partial(here.place.ask, LOOKED_AFTER, before[0][0]))
    await here.change("nightly", "state = 'paused'")
    ran = await watching
    message = "11 evaluations of batch nightly became dead letters."
    assert f"] ALERT DLQGrowing: {message} → scoreline batch dlq nightly" in ran.stdout
    assert "] over: DLQGrowing (dead letters)" in ran.stdout
    assert re.search(r"^\[\d\d:\d\d:\d\d\] running 0 of 12", ran.stdout, re.MULTILINE)
    assert ("\x1b" in ran.stdout, ran.exit_code) == (False, 4)


async def test_alert_tells_of_postgres_itself(here: Stage) -> None:
    """It can't be asked what time it is, and is told of all the same."""
    await here.submit("nightly", ["passed", "queued"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch", "--alert", "--json"))
    await until(lambda: here.place.ask(LOOKED))
    await here.place.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'scoreline batch'"
    )
    await until(lambda: here.place.ask(LOOKED))
    await here.change("nightly", "state = 'cancelled', finished_at = now()")
    seen = [json.loads(line) for line in (await watching).stdout.splitlines()]
    states = [each["state"] for each in seen if each.get("alert") == "PostgresDown"]
    assert states == ["firing", "over"]


async def test_list_is_newest_first_and_can_be_narrowed(here: Stage) -> None:
    """Name, status, progress, dead letters; external batches are listed as what they are."""
    await here.submit("old", ["passed", "dead"])
    await here.change("old", f"{OVER}, accepted_at = now() - interval '2 hours', project = 'p'")
    await here.submit("new", ["queued"])
    await here.place.store(life(1))
    await here.change("batch-1", "accepted_at = now() - interval '1 hour'")
    found = await here.documents("list")
    assert [(each["batch_id"], each["status"]) for each in found] == [
        ("new", "running"), ("batch-1", "external"), ("old", "completed"),
    ]  # fmt: skip
    assert (found[2]["done"], found[2]["total"], found[2]["pass_rate"], found[2]["dead_letters"]) == (
        2,
        2,
        0.5,
        1,
    )
    assert [each["batch_id"] for each in await here.documents("list", "--status", "external")] == [
        "batch-1"
    ]
    assert [each["batch_id"] for each in await here.documents("list", "--project", "p")] == ["old"]
    assert len(await here.documents("list", "--limit", "1")) == 1
    said = (await here.run("list")).stdout
    assert said.index("new") < said.index("batch-1") < said.index("old")
    assert "2 h 0 min" in said
    assert (await here.run("list", "--status", "odd")).exit_code == 2


@pytest.mark.parametrize("flags", ["", "--json"])
@pytest.mark.parametrize(
    ("redirection", "code", "said"),
    [
        (">/dev/full", 1, "error: No space is left for the output; what was written of it is not whole.\n"),
        (">&-", 0, ""),
    ],
)
async def test_output_that_goes_nowhere_is_no_traceback(
    here: Stage, flags: str, redirection: str, code: int, said: str
) -> None:
    """A full disk behind the output is told; that nobody wants the output is not."""
    await here.submit("nightly", ["passed"])
    process = await create_subprocess_exec(
        "sh", "-c", f'"$0" batch list {flags} {redirection}', SCORELINE, stderr=PIPE,
        env=environment(EVAL_REDIS_URL=here.redis_url, EVAL_POSTGRES_URL=here.place.url),
    )  # fmt: skip
    _, problem = await process.communicate()
    assert (process.returncode, problem.decode()) == (code, said)


async def test_external_batch_is_over_when_all_has_ended(here: Stage) -> None:
    """Nobody closes it, so its counters decide."""
    await here.place.store(life(1))
    ran = await here.run("status", "batch-1", "--watch", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["status"]) == (0, "external")


async def test_dead_letters_come_with_the_reason_and_the_way_back(here: Stage) -> None:
    """Kind, message, attempt and case; what is foreign is shown and not obeyed."""
    await here.submit("nightly", ["passed", "dead", "timed_out"])
    letters = {each["evaluation_id"]: each for each in await here.documents("dlq", "nightly")}
    assert set(letters) == {"nightly.00000002", "nightly.00000003"}
    dead, late = letters["nightly.00000002"], letters["nightly.00000003"]
    assert (dead["case_id"], dead["kind"], dead["message"]) == ("case-2", "permanent", "no such model")
    assert (late["kind"], late["message"]) == ("timed_out", "the task limit of 60 s passed")
    await here.place.alter(
        "UPDATE scorecards SET error = %s WHERE evaluation_id = 'nightly.00000002'",
        json.dumps({"kind": "permanent", "message": WILD}),
    )
    ran = await here.run("dlq", "nightly", "--limit", "1")
    assert ran.exit_code == 0
    assert "2 given up: 1 permanent, 1 timed_out" in ran.stdout
    assert "… and 1 more" in ran.stdout
    assert "scoreline batch retry nightly\n" in ran.stdout
    assert "scoreline batch retry nightly --only nightly.0000000" in ran.stdout
    assert "\x1b" not in (await here.run("dlq", "nightly")).stdout
    await here.submit("fine", ["passed"])
    assert "Nothing of fine was given up." in (await here.run("dlq", "fine")).stdout


async def test_a_dead_letter_is_shown_up_to_what_to_do_about_it(here: Stage) -> None:
    """Advice comes at the end of a message: a line's length would cut it off."""
    await here.submit("nightly", ["dead"])
    await here.place.alter(
        "UPDATE scorecards SET error = %s WHERE evaluation_id = 'nightly.00000001'",
        json.dumps({"kind": "no_sandbox", "message": f"{'there is no sandbox, ' * 8}install-bubblewrap"}),
    )
    assert "install-bubblewrap" in (await here.run("dlq", "nightly")).stdout


@pytest.mark.parametrize("command", [("status",), ("dlq",), ("export", "-o", "-"), ("compare", "nightly")])
async def test_unknown_batch_names_those_near_it(here: Stage, command: tuple[str, ...]) -> None:
    """A typing error costs no search."""
    await here.submit("nightly", ["passed"])
    ran = await here.run(*command, "nigthly")
    assert isinstance(ran.exception, Problem)
    assert str(ran.exception) == "There is no batch nigthly. Nearest: nightly"
