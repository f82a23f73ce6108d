"""`scoreline replay --batch --verify` on real servers, run as commands."""

from tests.builders import BATCH
from tests.integration.scoreline.reports.audit.audited import document, replay
from tests.integration.worker import Site, scoreline


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


async def test_verify_works_without_redis_and_without_unicode(here: Site) -> None:
    """Without Redis the reasons are reported as not known; unsupported characters are replaced."""
    bare = {"EVAL_REDIS_URL": "redis://127.0.0.1:1", "EVAL_POSTGRES_URL": here.postgres_url}
    ran = scoreline("replay", "--verify", **bare, PYTHONIOENCODING="ascii")
    assert ran.returncode == 0, ran.stderr
    assert "? every row of every table matches the log" in ran.stdout
    assert "open-gap  queued: the reason is not known, because Redis does not answer" in ran.stdout


async def test_since_verifies_only_what_was_stored_since(here: Site) -> None:
    """A corruption of an older evaluation is not reported, one of a newer evaluation is."""
    await here.conn.execute(
        "UPDATE evaluations SET updated_at = now() - interval '1 day' WHERE evaluation_id <> 'done-2'"
    )
    await here.conn.execute(
        "UPDATE events SET recorded_at = now() - interval '1 day' WHERE evaluation_id <> 'done-2'"
    )
    await here.conn.execute("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'done-1'")
    code, out, _ = replay(here, "--verify", "--since", "2h")
    assert (code, ": 1 evaluations changed since 20" in out) == (0, True)
    assert "counters and deleted rows: without --since" in out
    await here.conn.execute("UPDATE scorecards SET score = 0.25 WHERE evaluation_id = 'done-2'")
    code, out, _ = replay(here, "--batch", BATCH, "--verify", "--since", "2h")
    assert code == 1
    assert "scorecards done-2 score: is 0.25, should be 1.0" in out
    assert "done-1" not in out
    found = document(here, "--verify", "--since", "2000-01-01T00:00:00Z")
    assert (found["since"], found["evaluations"], found["differing"]) == ("2000-01-01T00:00:00+00:00", 9, 2)
    assert replay(here, "--verify")[0] == 1


async def test_an_event_that_moved_no_row_is_verified_too(here: Site) -> None:
    """Late and stale events change nothing but the log."""
    await here.conn.execute("UPDATE evaluations SET updated_at = now() - interval '1 day'")
    await here.conn.execute(
        "UPDATE events SET recorded_at = now() - interval '1 day' WHERE evaluation_id <> 'failed'"
    )
    assert document(here, "--verify", "--since", "1h")["evaluations"] == 1
