"""Alerts while a batch is watched on real servers."""

import asyncio
import json
import re
from functools import partial

from tests.integration.scoreline.batch_harness import Harness
from tests.integration.scoreline.reports.batch_states import POLLED
from tests.waiting import until

POLLED_AFTER = POLLED.replace("SELECT 1", "SELECT state_change") + " AND state_change > %s"


FEWER = (
    "UPDATE batch_progress SET failed = failed - 1"
    " WHERE (batch_id, shard) IN (SELECT batch_id, shard FROM batch_progress WHERE failed > 0 LIMIT 1)"
)


async def test_alerts_of_one_view_change_no_exit_code(here: Harness) -> None:
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


async def test_an_alert_is_reported_when_it_fires_and_when_it_is_over(here: Harness) -> None:
    """DLQGrowing fires at eleven dead letters, and is over once there are ten."""
    await here.submit("nightly", [*["dead"] * 11, "queued"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch", "--alert"))
    await until(lambda: here.place.ask(POLLED))
    await here.place.alter(FEWER)
    # A view that was being read may not include the change; the next one does.
    before = await here.place.ask("SELECT clock_timestamp()")
    for _ in range(2):
        before = await until(partial(here.place.ask, POLLED_AFTER, before[0][0]))
    await here.change("nightly", "state = 'paused'")
    ran = await watching
    message = "11 evaluations of batch nightly became dead letters."
    assert f"] ALERT DLQGrowing: {message} → scoreline batch dlq nightly" in ran.stdout
    assert "] over: DLQGrowing (dead letters)" in ran.stdout
    assert re.search(r"^\[\d\d:\d\d:\d\d\] running 0 of 12", ran.stdout, re.MULTILINE)
    assert ("\x1b" in ran.stdout, ran.exit_code) == (False, 4)


async def test_an_unreachable_postgres_is_an_alert(here: Harness) -> None:
    """PostgresDown fires and is over, though no view can be read meanwhile."""
    await here.submit("nightly", ["passed", "queued"])
    watching = asyncio.create_task(here.run("status", "nightly", "--watch", "--alert", "--json"))
    await until(lambda: here.place.ask(POLLED))
    await here.place.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'scoreline batch'"
    )
    await until(lambda: here.place.ask(POLLED))
    await here.change("nightly", "state = 'cancelled', finished_at = now()")
    seen = [json.loads(line) for line in (await watching).stdout.splitlines()]
    states = [each["state"] for each in seen if each.get("alert") == "PostgresDown"]
    assert states == ["firing", "over"]
