"""Histories as text, line by line; foreign text takes no effect as markup or escape sequence."""

import pytest

from eventlog import payloads as p
from scoreline.formatting import printable
from scoreline.reports.replay.follow_updates import UpdateTracker
from tests.builders import event, history
from tests.replaying import Scene
from tests.unit.scoreline.reports.replay.shown_histories import lived, shown, words

EVIL = "[red]not markup[/red] \x1b[31mnot obeyed\x07"


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
