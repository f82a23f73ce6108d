"""Tables for any width."""

from io import StringIO

import pytest
from rich.console import Console

from scoreline.reports.table import Column, fits, fitted

COLUMNS = [Column("batch"), Column("passed", is_figure=True), Column("note")]
ROWS = [["nightly", "7", "-"], ["b", "1,234", "slow"]]
WIDTH = len("nightly") + len("passed") + len("slow") + 2 * 2


def text(width: int) -> list[str]:
    """Return the lines of a table fitted into a width, on a wider terminal."""
    console = Console(width=60, file=StringIO(), record=True, highlight=False)
    console.print(fitted(COLUMNS, ROWS, width))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_rows_that_fit_are_columns_with_figures_to_the_right() -> None:
    """The exact width is enough."""
    assert text(WIDTH) == [
        "batch    passed  note",
        "nightly       7  -",
        "b         1,234  slow",
    ]


def test_rows_that_do_not_fit_are_paragraphs() -> None:
    """Each value has its heading; empty values are left out, and nothing is cut."""
    assert text(WIDTH - 1) == ["nightly", "  passed 7", "b", "  passed 1,234 · note slow"]


@pytest.mark.parametrize(
    ("cell", "result"), [("ab", True), ("abc", False), ("a\nb", False), ("世", True), ("世a", False)]
)
def test_the_width_of_a_cell_is_that_on_the_terminal(cell: str, result: bool) -> None:
    """Wide characters take two columns, and a line break needs a paragraph."""
    assert fits([Column("x")], [[cell]], 2) is result
