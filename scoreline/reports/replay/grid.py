"""Aligned columns with full-width sentences between the rows, one line each, readable by grep."""

from collections.abc import Iterator, Sequence

from rich.text import Text

GUTTER = 2
NARROWEST = 16

Row = Sequence[Text] | Text
"""A row of cells, or a sentence that takes the whole width."""


def grid(headings: Sequence[str], rows: Sequence[Row], width: int) -> Iterator[Text]:
    """Return rows as aligned lines; the last column takes the remaining width, and is cut to it."""
    titles = [Text(heading, style="bold") for heading in headings]
    cells = [row for row in (titles, *rows) if not isinstance(row, Text)]
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    left = width - sum(widths[:-1]) - GUTTER * (len(widths) - 1)
    widths[-1] = max(NARROWEST, min(widths[-1], left))
    for row in (titles, *rows):
        yield _cut(row, width) if isinstance(row, Text) else _aligned(row, widths)


def _aligned(row: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text(no_wrap=True)
    for cell, width in zip(row, widths, strict=True):
        fitted = cell.copy()
        fitted.truncate(width, overflow="ellipsis", pad=True)
        line.append_text(fitted).append(" " * GUTTER)
    line.rstrip()
    return line


def _cut(sentence: Text, width: int) -> Text:
    fitted = sentence.copy()
    fitted.truncate(width, overflow="ellipsis")
    return fitted
