"""Histories as text, line by line; foreign text takes no effect as markup or escape sequence."""

from io import StringIO

import pytest
from rich.console import Console

from eventlog import payloads as p
from scoreline.formatting import printable
from scoreline.reports.audit.batches import progress_bar
from scoreline.reports.replay.comparison import compare, sides
from scoreline.reports.replay.comparison_text import show_comparison
from scoreline.reports.replay.document import document
from scoreline.reports.replay.follow_updates import UpdateTracker
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.past_state import cut
from scoreline.reports.replay.timeline_text import show
from tests.builders import event, history
from tests.replaying import Scene

LIFE = "queued provisioning running responded scored completed"
EVIL = "[red]not markup[/red] \x1b[31mnot obeyed\x07"


def shown(
    replayed: EvaluationHistory, *, width: int = 120, at: int | None = None, attempt: int | None = None
) -> str:
    """Return the text of a history on a terminal of this width."""
    console = Console(width=width, file=StringIO(), record=True, highlight=False)
    shown_history, then = cut(replayed, at) if at else (replayed, None)
    show(console, shown_history, attempt=attempt, then=then)
    return console.export_text()


def words(text: str) -> list[str]:
    """Return the lines with runs of spaces collapsed, so that column widths do not matter."""
    return [" ".join(line.split()) for line in text.splitlines()]


async def lived(*arrivals: int, stored: bool = True) -> Scene:
    """Return a scene where the events of one attempt arrive in this order."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*(events[n] for n in arrivals or range(6)))
    if stored:
        await scene.store()
    return scene


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


async def test_the_row_of_an_overtaken_event_has_its_rank_and_the_successor():
    """The row has the arrival rank, and the sequence that arrived first."""
    lines = words(shown((await lived(0, 2, 1, 3, 4, 5)).replayed()))
    assert "1 3, after seq 2 provisioning provisioning 1.0 s applied test executor-1 · process" in lines
    assert "arrivals 6 entries, 1 after a successor" in lines


async def test_a_bridge_is_shown_between_its_rows():
    """The line of a bridged gap is where its sequences are missing."""
    scene = await lived(0, 1, 5)
    scene.wait(seconds=31)
    await scene.store()
    lines = words(shown(scene.replayed()))
    place = lines.index("⋯ 2-4 never arrived; bridged 31.0 s later by 5 completed")
    assert lines[place - 1].startswith("1 2 provisioning")
    assert lines[place + 1].startswith("5 3 completed completed")
    assert "state completed, verdict passed, over a bridged gap" in lines


async def test_an_open_gap_is_shown_between_its_rows():
    """The line has the missing sequences, since when, and the waiting events."""
    scene = await lived(0, 1, 4)
    scene.wait(seconds=2)
    lines = words(shown(scene.replayed()))
    [gap] = [line for line in lines if line.startswith("⋯")]
    assert gap.startswith("⋯ 2-3 missing since ")
    assert gap.endswith(", 2.0 s ago; waiting: 4 scored")
    assert "4 3 scored unchanged 3.0 s waiting test exact 1 passed" in lines
    assert "read from Postgres, and 1 entry more in the Redis stream" in lines


async def test_entries_that_are_not_stored_yet_are_marked():
    """Both the row and the heading show that an entry is not stored yet."""
    lines = words(shown((await lived(0, 1, stored=False)).replayed()))
    assert "state nothing stored yet; once all is stored: provisioning, at attempt 1, sequence 1" in lines
    assert "read from the Redis stream, 2 entries; Postgres has nothing of it yet" in lines
    assert any("not stored yet" in line for line in lines if line.startswith("1 2 provisioning"))


async def test_the_title_of_an_attempt_has_reason_opener_and_owner():
    """Each attempt has a title; the filter by attempt leaves one."""
    scene = Scene()
    scene.arrive(*history("queued provisioning retrying"))
    scene.arrive(*history("cancelled", attempt=2))
    await scene.store()
    lines = words(shown(scene.replayed()))
    assert "Attempt 1 · submitted · opened by test at 00:01:00.000 · owner executor-1" in lines
    assert "Attempt 2 · cancelled · opened by test at 00:02:00.000" in lines
    assert "cancelled by operator" in lines
    assert "Attempt 1" not in shown(scene.replayed(), attempt=2)


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


async def test_markup_and_escape_sequences_in_foreign_text_take_no_effect():
    """Output with control characters and brackets is printed as text, at every width."""
    scene = Scene()
    scene.arrive(
        event("queued"),
        event("provisioning", sequence=1),
        event("running", sequence=2),
        event(p.Responded(output=EVIL), sequence=3),
        event(p.Failed(error=p.ErrorDetail(kind="odd", message=EVIL)), sequence=4),
    )
    scene.arrive_garbage(b"event", EVIL.encode())
    await scene.store()
    for width in (80, 120, 200):
        text = shown(scene.replayed(), width=width)
        assert not {"\x1b", "\x07"} & set(text)
        assert "[red]not markup[/red]" in text
    for update in UpdateTracker().updates(scene.replayed()):
        assert update.text == printable(update.text)


@pytest.mark.parametrize("width", [60, 80, 118, 200])
async def test_rows_keep_to_the_width_of_the_terminal(width: int):
    """Each event is one line, cut to the width of the terminal."""
    long = p.Responded(output="word " * 1_000)
    scene = Scene()
    scene.arrive(*history("queued provisioning running responded", responded=long))
    await scene.store()
    rows = [line for line in shown(scene.replayed(), width=width).splitlines() if " responded " in line]
    assert len(rows) == 1
    assert len(rows[0]) <= max(width, 100)


async def test_a_comparison_marks_what_differs():
    """Differences are marked in rows and results, followed by the diff of the outputs."""
    left, right = await lived(), Scene(evaluation_id="other")
    answer = p.Responded(output="5")
    right.arrive(*history(LIFE, evaluation_id="other", responded=answer))
    await right.store()
    console = Console(width=120, file=StringIO(), record=True, highlight=False)
    show_comparison(console, compare(*sides((left.replayed(), None), (right.replayed(), None))))
    lines = words(console.export_text())
    assert lines[0] == "evaluation-1 ↔ other"
    assert any(
        line.startswith("≠ 1/3 responded") and line.endswith("output, usage, cost_usd") for line in lines
    )
    assert "verdict passed passed" in lines
    assert lines[-2:] == ["-4", "+5"]


async def test_the_diff_of_outputs_keeps_their_spaces():
    """Outputs that differ in indentation only are shown unchanged in the diff."""
    scenes = [Scene(), Scene(evaluation_id="other")]
    for scene, output in zip(scenes, ("if x:\n  y", "if x:\n    y"), strict=True):
        answer = p.Responded(output=output)
        scene.arrive(*history(LIFE, evaluation_id=scene.evaluation_id, responded=answer))
        await scene.store()
    left, right = (scene.replayed() for scene in scenes)
    console = Console(width=120, file=StringIO(), record=True, highlight=False)
    show_comparison(console, compare(*sides((left, None), (right, None))))
    assert console.export_text().splitlines()[-3:] == [" if x:", "-  y", "+    y"]


def test_a_progress_bar_shows_any_name(monkeypatch):
    """A batch id with invalid markup is printed as text."""
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar("verifying nightly[/]", 1) as advance:
        advance(1)
    assert "nightly[/]" in terminal.getvalue()


async def test_updates_have_each_entry_once_and_again_after_a_wait():
    """An entry that waits is reported, then its new disposition; none is reported twice."""
    scene, tracker = Scene(), UpdateTracker()
    queued, claim, running = history("queued provisioning running")
    scene.arrive(queued, running)
    first = [update.json["kind"] for update in tracker.updates(scene.replayed())]
    assert first == ["entry", "entry", "gap"]
    assert list(tracker.updates(scene.replayed())) == []
    scene.arrive(claim)
    await scene.store()
    updates = list(tracker.updates(scene.replayed()))
    assert [(each.json["sequence"], each.json["verdict"]) for each in updates] == [
        (2, "applied"),
        (1, "applied"),
    ]
    assert "had waited" in updates[0].text


async def test_the_document_has_events_ranks_and_dispositions():
    """The JSON of an entry has the whole event, its rank, its successor and its disposition."""
    result = document((await lived(0, 2, 1, 3, 4, 5)).replayed())
    [attempt] = result["attempts"]
    line = attempt["entries"][1]
    assert (line["sequence"], line["arrived"], line["verdict"]) == (1, 3, "applied")
    assert line["overtaken_by"] == {"attempt": 1, "sequence": 2}
    assert line["event"]["data"]["executor"] == "executor-1"
    assert result["scorecard"]["verdict"] == "passed"
    assert result["duration_s"] == 5.0
