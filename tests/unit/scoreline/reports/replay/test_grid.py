"""Aligned columns with sentences between the rows."""

from rich.text import Text

from scoreline.reports.replay.grid import NARROWEST, Row, grid


def lines(*rows: Row, width: int) -> list[str]:
    return [line.plain for line in grid(["a", "detail"], rows, width)]


def row(*cells: str) -> list[Text]:
    return [Text(cell) for cell in cells]


def test_columns_are_as_wide_as_their_widest_cell():
    """The heading counts, too; lines have no trailing spaces."""
    assert lines(row("1", "x"), row("long", "y"), width=40) == [
        "a     detail",
        "1     x",
        "long  y",
    ]


def test_the_last_column_is_cut_to_the_remaining_width():
    """Twenty characters are left of thirty."""
    [_, line] = lines(row("12345678", "x" * 40), width=30)
    assert line == "12345678  " + "x" * 19 + "…"


def test_the_last_column_keeps_a_minimum_width():
    """On a very narrow terminal the line is wider than the terminal, and readable."""
    [_, line] = lines(row("12345678", "x" * 40), width=10)
    assert line == "12345678  " + "x" * (NARROWEST - 1) + "…"


def test_a_sentence_takes_the_whole_width_and_no_part_in_the_columns():
    """A sentence longer than the width is cut."""
    assert lines(row("1", "x"), Text("s" * 30), width=20) == ["a  detail", "1  x", "s" * 19 + "…"]
