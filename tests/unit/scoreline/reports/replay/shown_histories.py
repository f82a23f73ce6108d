"""Histories, and the text of them on a terminal, for tests of that text."""

from io import StringIO

from rich.console import Console

from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.past_state import cut
from scoreline.reports.replay.timeline_text import show
from tests.builders import history
from tests.replaying import Scene

LIFE = "queued provisioning running responded scored completed"


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
