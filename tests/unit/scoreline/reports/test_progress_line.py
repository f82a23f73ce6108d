"""The line of progress in a terminal and in a log."""

import re
from datetime import timedelta
from io import StringIO

from rich.console import Console

from projections.queries.batches import BatchSnapshot
from scoreline.reports.progress_line import ProgressDisplay
from tests.unit.scoreline.reports.snapshots import FLEET, NOW, make_snapshot

STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def shown(*snapshots: BatchSnapshot, terminal: bool = False) -> str:
    out = StringIO()
    with ProgressDisplay(Console(file=out, width=120, force_terminal=terminal)) as display:
        for snapshot in snapshots:
            display.show(snapshot, FLEET)
    return out.getvalue()


def test_plain_progress_is_a_line_every_ten_seconds() -> None:
    """A line is printed every ten seconds and at a change of status, not for every snapshot."""
    every_second = [
        make_snapshot(now=NOW + timedelta(seconds=at), completed=at, passed=at) for at in range(21)
    ]
    lines = shown(
        *every_second, make_snapshot(state="paused", now=NOW + timedelta(seconds=21))
    ).splitlines()
    assert len(lines) == 4
    assert lines[1].split(" · ") == [
        "running 10 of 100 (10.0%)", "1.0/s", "1 min 30 s to go", "100.0% passed so far",
        "1 executor (one), 2/4 slots busy",
    ]  # fmt: skip
    assert lines[3].startswith("paused 0 of 100")


def test_dead_letters_are_not_progress() -> None:
    """A batch of dead letters only is at 0 %, in its text and in its bar."""
    output = shown(make_snapshot(failed=60, timed_out=40), terminal=True)
    assert "running 0 of 100 (0.0%), 100 dead letters" in STYLE.sub("", output)
    assert "━" not in output
    assert "x" * 8 in output


def test_an_empty_batch_is_shown_without_an_error() -> None:
    """A batch of no evaluations is shown with and without a terminal."""
    assert shown(make_snapshot(total=0)).startswith("running 0 of 0")
    assert "running 0 of 0" in shown(make_snapshot(total=0), terminal=True)
