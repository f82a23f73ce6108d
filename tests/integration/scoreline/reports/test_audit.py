"""`scoreline replay --batch` on real servers, run as commands."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from eventlog import payloads as p
from tests.builders import BATCH, history
from tests.integration.worker import Site, scoreline, site, worker
from tests.waiting import until

LIFE = "queued provisioning running responded scored completed"


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    """A batch with evaluations that completed, failed, were retried, bridged, or wait beyond a gap."""
    async with site(redis_url, postgres_url) as made:
        async with worker(made):
            for number in range(4):
                await made.append(history(LIFE, evaluation_id=f"done-{number}"))
            await made.append(history("queued provisioning running failed", evaluation_id="failed"))
            await made.append(history("queued provisioning running retrying", evaluation_id="retried"))
            await made.append(history("queued:retry " + LIFE[7:], evaluation_id="retried", attempt=2))
            bridged = history(LIFE, evaluation_id="bridged")
            await made.append([*bridged[:2], *bridged[3:]])
            open_gap = history("queued provisioning running responded", evaluation_id="open-gap")
            await made.append([open_gap[0], open_gap[3]])
            await made.append(history("queued provisioning", evaluation_id="working"))
            await until(lambda: is_stored(made))
        yield made


async def is_stored(here: Site) -> bool:
    ended = await here.rows("SELECT total - pending, (SELECT count(*) FROM gap_bridges) FROM batch_status")
    states = {await here.state("open-gap"), await here.state("working")}
    return ended == [(7, 1)] and states == {"queued", "provisioning"}


def replay(here: Site, *arguments: str) -> tuple[int, str, str]:
    ran = scoreline(
        "replay", *arguments, EVAL_REDIS_URL=here.redis_url, EVAL_POSTGRES_URL=here.postgres_url
    )
    return ran.returncode, ran.stdout, ran.stderr


def document(here: Site, *arguments: str) -> dict[str, Any]:
    _, out, _ = replay(here, *arguments, "--json")
    [line] = out.splitlines()
    return dict(json.loads(line))


async def test_verify_reports_altered_rows_and_rebuild_corrects_them(here: Site) -> None:
    """One altered scorecard, counter and evaluation row are each reported, then corrected."""
    code, out, _ = replay(here, "--batch", BATCH, "--verify")
    assert (code, "✓ every row of every table matches the log" in out) == (0, True)
    await here.conn.execute("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'done-2'")
    await here.conn.execute("UPDATE batch_progress SET passed = passed + 7 WHERE completed > 0")
    await here.conn.execute("UPDATE evaluations SET state = 'running' WHERE evaluation_id = 'failed'")
    code, out, _ = replay(here, "--batch", BATCH, "--verify")
    assert code == 1
    assert "scorecards done-2 score: is 0.5, should be 1.0" in out
    assert "evaluations failed state: is running, should be failed" in out
    assert f"batch_progress {BATCH} shard" in out
    assert f"scoreline replay --batch {BATCH} --rebuild" in out
    code, out, _ = replay(here, "--batch", BATCH, "--rebuild")
    assert (code, "rows corrected: 1 in evaluations, 1 in scorecards" in out) == (0, True)
    assert "every row matched already" in replay(here, "--rebuild")[1]
    code, out, _ = replay(here, "--verify")
    assert code == 0
    # Each evaluation that has not ended is listed with its reason.
    assert "2 evaluation(s) have not ended" in out
    assert "open-gap  queued: 1-2 missing since" in out
    assert "working  provisioning: in progress; last event" in out


async def test_verify_as_json_lists_differences(here: Site) -> None:
    """`--verify --json` prints one object per batch, with the differences by column."""
    found = document(here, "--batch", BATCH, "--verify")
    assert (found["ok"], found["evaluations"], found["open"], found["differing"]) == (True, 9, 2, 0)
    await here.conn.execute("DELETE FROM scorecards WHERE evaluation_id = 'done-2'")
    found = document(here, "--verify")
    assert (found["ok"], found["differing"]) == (False, 1)
    [difference] = found["differences"]
    assert (difference["table"], difference["key"], difference["found"]) == (
        "scorecards", "done-2", "no such row",
    )  # fmt: skip
    assert document(here, "--rebuild")["scorecard_rows"] == 1


async def test_summary_fits_on_one_screen(here: Site) -> None:
    """The summary has rates, waits, retries, reorderings, the slowest evaluations and all executors."""
    code, out, _ = replay(here, "--batch", BATCH)
    assert code == 0
    assert "7 of 9 evaluations ended" in out
    assert "6 completed" in out
    assert "opened again: 1 retry" in out
    assert "bridged gaps: 1" in out
    for line in ("queued → provisioning", "responded → scored", "arrived → stored"):
        assert line in out
    assert len(out.splitlines()) < 50
    found = document(here, "--batch", BATCH, "--summary")
    [share] = found["executors"]
    assert (share["executor"], share["retried"], share["failed"], share["unclosed"]) == (
        "executor-1", 1, 1, 1,
    )  # fmt: skip
    assert found["verdicts"] == {"applied": 44, "late": 2}
    assert {slow["evaluation_id"] for slow in found["slowest"]} >= {"retried"}


async def test_verify_works_without_redis_and_without_unicode(here: Site) -> None:
    """Without Redis the reasons are reported as not known; unsupported characters are replaced."""
    bare = {"EVAL_REDIS_URL": "redis://127.0.0.1:1", "EVAL_POSTGRES_URL": here.postgres_url}
    ran = scoreline("replay", "--verify", **bare, PYTHONIOENCODING="ascii")
    assert ran.returncode == 0, ran.stderr
    assert "? every row of every table matches the log" in ran.stdout
    assert "open-gap  queued: the reason is not known, because Redis does not answer" in ran.stdout


async def test_rebuild_rejects_a_log_that_breaks_a_rule(here: Site) -> None:
    """The command exits with 1 and names the evaluation."""
    await here.conn.execute(
        "UPDATE events SET verdict = 'stale' WHERE evaluation_id = 'done-1' AND sequence = 5"
    )
    code, _, problem = replay(here, "--batch", BATCH, "--rebuild")
    assert (code, "The log of done-1 breaks a rule" in problem) == (1, True)


async def test_an_unknown_batch_is_reported_with_the_nearest_ids(here: Site) -> None:
    """A typo in a batch id is reported with the nearest id."""
    code, _, problem = replay(here, "--batch", "bach-1", "--verify")
    assert (code, problem) == (1, f"error: There is no batch bach-1. Nearest: {BATCH}\n")


@pytest.mark.parametrize(
    "arguments",
    [("e-1", "--batch", "b"), ("--batch", "b", "--at", "3"), ("--batch", "b", "--verify", "--rebuild"),
     ("--summary",), ("--batch", "b", "--follow"), ("--batch", "b", "--from", "redis")],
)  # fmt: skip
def test_conflicting_options_are_usage_errors(arguments: tuple[str, ...]) -> None:
    """Options that exclude each other exit with 2, before any server is queried."""
    assert scoreline("replay", *arguments).returncode == 2


async def test_escape_sequences_in_foreign_ids_take_no_effect(redis_url: str, postgres_url: str) -> None:
    """An id with escape sequences or markup is printed as text."""
    async with site(redis_url, postgres_url) as here:
        wild = "wild-\u202e[bold]"
        events = history(LIFE, evaluation_id=wild, provisioning=p.Provisioning(executor=wild, nonce="n"))
        async with worker(here):
            await here.append(events)
            await until(lambda: here.state(wild))
        _, out, _ = replay(here, "--batch", BATCH)
        assert "\u202e" not in out
        assert "wild-\\u202e[bold]" in out
