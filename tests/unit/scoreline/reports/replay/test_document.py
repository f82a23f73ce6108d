"""A history as JSON."""

from scoreline.reports.replay.document import document
from tests.unit.scoreline.reports.replay.shown_histories import lived


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
