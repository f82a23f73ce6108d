"""What a person sees, line by line; and that foreign text is only ever text."""

from datetime import timedelta
from io import StringIO

import pytest
from rich.console import Console

from eventlog import payloads as p
from scoreline.formatting import excerpt, money, printable, span
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
    """Render a replayed as a terminal of this width would show it."""
    console = Console(width=width, file=StringIO(), record=True, highlight=False)
    told, then = cut(replayed, at) if at else (replayed, None)
    show(console, told, attempt=attempt, then=then)
    return console.export_text()


def words(text: str) -> list[str]:
    """Fold spaces, so that columns may be as wide as they like."""
    return [" ".join(line.split()) for line in text.splitlines()]


async def lived(*arrivals: int, stored: bool = True) -> Scene:
    """Let the events of a plain life arrive in this order."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*(events[n] for n in arrivals or range(6)))
    if stored:
        await scene.store()
    return scene


async def test_heading_and_scorecard_frame_the_timeline():
    """Who, in which batch, how it stands, how long it took; and what it came to."""
    said = words(shown((await lived()).replayed()))
    assert said[:9] == [
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
    assert "Scorecard passed, score 1" in said
    assert "exact: 1 passed" in said


async def test_an_overtaken_event_says_so_in_its_row():
    """Rank, and the sequence that was there first."""
    said = words(shown((await lived(0, 2, 1, 3, 4, 5)).replayed()))
    assert "1 3, after seq 2 provisioning provisioning 1.0 s applied test executor-1 · process" in said
    assert "arrivals 6 entries, 1 after a successor" in said


async def test_a_bridge_stands_between_its_rows():
    """The sentence is where the events are missing."""
    scene = await lived(0, 1, 5)
    scene.wait(seconds=31)
    await scene.store()
    said = words(shown(scene.replayed()))
    place = said.index("⋯ 2-4 never arrived; bridged 31.0 s later by 5 completed")
    assert said[place - 1].startswith("1 2 provisioning")
    assert said[place + 1].startswith("5 3 completed completed")
    assert "state completed, verdict passed, over a bridged gap" in said


async def test_an_open_gap_stands_between_its_rows():
    """What is missing, since when, and what waits."""
    scene = await lived(0, 1, 4)
    scene.wait(seconds=2)
    said = words(shown(scene.replayed()))
    [gap] = [line for line in said if line.startswith("⋯")]
    assert gap.startswith("⋯ 2-3 missing since ")
    assert gap.endswith(", 2.0 s ago; waiting: 4 scored")
    assert "4 3 scored unchanged 3.0 s waiting test exact 1 passed" in said
    assert "read from Postgres, and 1 entry more in the Redis stream" in said


async def test_what_is_not_stored_yet_says_so():
    """Both in its row and in the heading."""
    said = words(shown((await lived(0, 1, stored=False)).replayed()))
    assert "state nothing stored yet; once all is stored: provisioning, at attempt 1, sequence 1" in said
    assert "read from the Redis stream, 2 entries; Postgres has nothing of it yet" in said
    assert any("not stored yet" in line for line in said if line.startswith("1 2 provisioning"))


async def test_attempts_name_reason_owner_and_opener():
    """Each attempt has a title of its own; a filter leaves one."""
    scene = Scene()
    scene.arrive(*history("queued provisioning retrying"))
    scene.arrive(*history("cancelled", attempt=2))
    await scene.store()
    said = words(shown(scene.replayed()))
    assert "Attempt 1 · submitted · opened by test at 00:01:00.000 · owner executor-1" in said
    assert "Attempt 2 · cancelled · opened by test at 00:02:00.000" in said
    assert "cancelled by operator" in said
    assert "Attempt 1" not in shown(scene.replayed(), attempt=2)


async def test_an_error_takes_the_scorecards_place():
    """Failed: what with, in full."""
    scene = Scene()
    scene.arrive(*history("queued provisioning failed"))
    await scene.store()
    assert "failed permanent: no such model" in words(shown(scene.replayed()))


async def test_the_state_at_a_moment_comes_first():
    """As of the second arrival of a reordered life."""
    said = words(shown((await lived(0, 3, 2, 1, 4, 5)).replayed(), at=2))
    assert said[0].endswith("entry 2 of 6")
    assert "state queued, at attempt 1, sequence 0" in said
    assert "owner nobody yet" in said
    assert 'answer on record, attempt 1, 3 responded: "4" · 8 tokens · $0.001' in said
    assert "waiting 3 responded" in said


async def test_the_quarantine_is_listed_with_reason_and_detail():
    """Rejected, conflicting, unreadable: each with its place and its id."""
    scene = Scene()
    scene.arrive(*history("queued provisioning completed"), event("failed", sequence=1))
    scene.arrive_garbage()
    await scene.store()
    said = words(shown(scene.replayed()))
    assert "Quarantine (3)" in said
    reasons = [line.split()[1:4] for line in said if " arrived " in f"{line} " and line[:1].isalnum()]
    assert ["arrived", "4", "conflict"] in reasons
    assert ["arrived", "5", "garbage"] in reasons


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (Origin.POSTGRES, "read from Postgres alone"),
        (Origin.REDIS, "read from the Redis stream alone: verdicts are worked out, not read"),
    ],
)
async def test_the_heading_says_where_it_was_read(origin: Origin, said: str):
    """A reader knows what the view can't know."""
    assert said in words(shown((await lived()).replayed(origin)))


async def test_a_stream_that_is_gone_is_normal_after_the_end_and_strange_before():
    """Silence means two different things."""
    ended, running = await lived(), await lived(0, 1)
    for scene in (ended, running):
        del scene.world.log._streams[scene.evaluation_id]
    assert "has expired, as it should after the end" in shown(ended.replayed())
    assert "Redis has no stream of it, though it has not ended" in shown(running.replayed())


async def test_foreign_text_is_neither_markup_nor_a_command_to_the_terminal():
    """An output full of control characters and brackets is shown, and nothing else happens."""
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
    """One line an event, whatever it carries; cut where it must be."""
    long = p.Responded(output="word " * 1_000)
    scene = Scene()
    scene.arrive(*history("queued provisioning running responded", responded=long))
    await scene.store()
    rows = [line for line in shown(scene.replayed(), width=width).splitlines() if " responded " in line]
    assert len(rows) == 1
    assert len(rows[0]) <= max(width, 100)


async def test_a_comparison_marks_what_differs():
    """Row by row, then figure by figure, then the outputs."""
    left, right = await lived(), Scene(evaluation_id="other")
    answer = p.Responded(output="5")
    right.arrive(*history(LIFE, evaluation_id="other", responded=answer))
    await right.store()
    console = Console(width=120, file=StringIO(), record=True, highlight=False)
    show_comparison(console, compare(*sides((left.replayed(), None), (right.replayed(), None))))
    said = words(console.export_text())
    assert said[0] == "evaluation-1 ↔ other"
    assert any(
        line.startswith("≠ 1/3 responded") and line.endswith("output, usage, cost_usd") for line in said
    )
    assert "verdict passed passed" in said
    assert said[-2:] == ["-4", "+5"]


async def test_outputs_that_differ_in_their_spaces_are_seen_to_differ():
    """A diff is shown as it stands: an indentation may be what went wrong."""
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
    """A batch may be named like markup that does not add up."""
    terminal = StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar("verifying nightly[/]", 1) as advance:
        advance(1)
    assert "nightly[/]" in terminal.getvalue()


async def test_news_tells_each_entry_once_and_again_when_it_had_waited():
    """Following: what waits is told, then what became of it; nothing is told twice."""
    scene, told = Scene(), UpdateTracker()
    queued, claim, running = history("queued provisioning running")
    scene.arrive(queued, running)
    first = [update.json["kind"] for update in told.updates(scene.replayed())]
    assert first == ["entry", "entry", "gap"]
    assert list(told.updates(scene.replayed())) == []
    scene.arrive(claim)
    await scene.store()
    news = list(told.updates(scene.replayed()))
    assert [(each.json["sequence"], each.json["verdict"]) for each in news] == [
        (2, "applied"),
        (1, "applied"),
    ]
    assert "had waited" in news[0].text


async def test_the_document_holds_everything_a_machine_may_ask_for():
    """The whole event, its place in both orders, and what became of it."""
    found = document((await lived(0, 2, 1, 3, 4, 5)).replayed())
    [attempt] = found["attempts"]
    line = attempt["entries"][1]
    assert (line["sequence"], line["arrived"], line["verdict"]) == (1, 3, "applied")
    assert line["overtaken_by"] == {"attempt": 1, "sequence": 2}
    assert line["event"]["data"]["executor"] == "executor-1"
    assert found["scorecard"]["verdict"] == "passed"
    assert found["duration_s"] == 5.0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0004, "0 ms"),
        (0.25, "250 ms"),
        (30.2, "30.2 s"),
        (63, "1 min 3 s"),
        (3_780, "1 h 3 min"),
        (100_000, "1 d 3 h"),
        (-2, "-2.0 s"),
    ],
)
def test_spans_are_in_units_a_person_thinks_in(seconds: float, said: str):
    """Never more than two units."""
    assert span(timedelta(seconds=seconds)) == said


def test_money_has_no_idle_zeros():
    """Cents and hundredths of cents alike."""
    assert [money(amount) for amount in (0, 0.001, 1.5, 2)] == ["$0", "$0.001", "$1.5", "$2"]


def test_excerpts_are_one_short_line():
    """Half a megabyte costs no more than a line."""
    assert excerpt("one\n two\tthree", 40) == "one two three"
    assert excerpt("x" * 500_000, 10) == "x" * 9 + "…"
