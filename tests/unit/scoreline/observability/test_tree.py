"""The tree of spans of an evaluation."""

import io

from rich.console import Console

from scoreline.observability.tree import branches, document, draw
from tests.unit.scoreline.observability.spans import span


def test_the_tree_has_each_span_below_its_own():
    """Spans are ordered by start; a span whose parent is in no file is at the top level."""
    tree = branches([span("ask", 3, 2), span("task", 2, 1), span("accept", 1), span("lost", 4, 99)])
    drawn = [(each.span.name, each.depth, each.offset_ms) for each in tree]
    assert drawn == [("accept", 0, 0.0), ("task", 1, 1.0), ("ask", 2, 2.0), ("lost", 0, 3.0)]


def test_the_tree_is_drawn_with_times_and_what_matters():
    """Control characters in an attribute are escaped."""
    console = Console(width=160, record=True, file=io.StringIO())
    draw(console, "e-1", [span("accept", 1), span("ask", 2, 1, target="a\x1b[31mb", batch_id="b")])
    text = console.export_text()
    assert "2 spans of 1 processes · 3.5 ms" in text
    assert "  ask" in text
    assert "target=a\\x1b[31mb" in text
    assert "batch_id" not in text
    assert document("e-1", [span("accept", 1)])["spans"][0]["duration_ms"] == 2.5
