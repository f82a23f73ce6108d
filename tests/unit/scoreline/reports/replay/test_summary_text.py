"""The heading, the scorecard and the quarantine around a timeline."""

import pytest

from scoreline.reports.replay.origin import Origin
from tests.builders import event, history
from tests.replaying import Scene
from tests.unit.scoreline.reports.replay.shown_histories import lived, shown, words


async def test_heading_and_scorecard_frame_the_timeline():
    """The heading has id, batch, state and times; the scorecard comes last."""
    lines = words(shown((await lived()).replayed()))
    assert lines[:9] == [
        "Evaluation evaluation-1",
        "batch batch-1",
        "case case-1",
        "state completed, verdict passed",
        "attempts 1",
        "began 2026-01-01 00:01:00.000 UTC",
        "ended 2026-01-01 00:01:05.000 UTC, after 5.0 s",
        "arrivals 6 entries",
        "read from Postgres; its Redis stream has nothing more",
    ]
    assert "Scorecard passed, score 1" in lines
    assert "exact: 1 passed" in lines


async def test_an_error_is_shown_instead_of_a_scorecard():
    """A failed evaluation ends with its error in full."""
    scene = Scene()
    scene.arrive(*history("queued provisioning failed"))
    await scene.store()
    assert "failed permanent: no such model" in words(shown(scene.replayed()))


async def test_the_state_at_a_moment_comes_first():
    """The heading has state, owner, answer and waiting entries as of the second arrival."""
    lines = words(shown((await lived(0, 3, 2, 1, 4, 5)).replayed(), at=2))
    assert lines[0].endswith("entry 2 of 6")
    assert "state queued, at attempt 1, sequence 0" in lines
    assert "owner none yet" in lines
    assert 'answer on record, attempt 1, 3 responded: "4" · 8 tokens · $0.001' in lines
    assert "waiting 3 responded" in lines


async def test_the_quarantine_is_listed_with_reason_and_detail():
    """Rejected, conflicting and undecodable entries are listed with arrival rank and reason."""
    scene = Scene()
    scene.arrive(*history("queued provisioning completed"), event("failed", sequence=1))
    scene.arrive_garbage()
    await scene.store()
    lines = words(shown(scene.replayed()))
    assert "Quarantine (3)" in lines
    reasons = [line.split()[1:4] for line in lines if " arrived " in f"{line} " and line[:1].isalnum()]
    assert ["arrived", "4", "conflict"] in reasons
    assert ["arrived", "5", "garbage"] in reasons


@pytest.mark.parametrize(
    ("origin", "text"),
    [
        (Origin.POSTGRES, "read from Postgres alone"),
        (Origin.REDIS, "read from the Redis stream alone: verdicts are computed, not read"),
    ],
)
async def test_the_heading_has_the_sources_that_were_read(origin: Origin, text: str):
    """The heading names the source, and that verdicts of the stream alone are computed."""
    assert text in words(shown((await lived()).replayed(origin)))


async def test_a_missing_stream_is_expected_after_the_end_and_reported_before():
    """The heading distinguishes an expired stream from a missing one."""
    ended, running = await lived(), await lived(0, 1)
    for scene in (ended, running):
        del scene.world.log._streams[scene.evaluation_id]
    assert "has expired, as expected after the end" in shown(ended.replayed())
    assert "Redis has no stream of it, though it has not ended" in shown(running.replayed())
