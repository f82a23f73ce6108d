"""The comparison of two histories as text."""

from io import StringIO

from rich.console import Console

from eventlog import payloads as p
from scoreline.reports.replay.comparison import compare, sides
from scoreline.reports.replay.comparison_text import show_comparison
from tests.builders import history
from tests.replaying import Scene
from tests.unit.scoreline.reports.replay.shown_histories import LIFE, lived, words


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
