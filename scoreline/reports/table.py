"""Tables for any width: columns where they fit, else one paragraph per row.

No id, count or word is cut in either form.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

GUTTER = 2
INDENT = 2


class Column(NamedTuple):
    """A column by its heading; figures are aligned to the right."""

    heading: str
    is_figure: bool = False


Cells = Sequence[Text | str]


def fitted(columns: Sequence[Column], rows: Sequence[Cells], width: int) -> RenderableType:
    """Return rows in columns if they fit into the width, else as paragraphs under their first cell."""
    cells = [[_text(cell) for cell in row] for row in rows]
    if fits(columns, rows, width):
        return _table(columns, cells)
    return Group(*(part for row in cells for part in _paragraph(columns, row)))


def fits(columns: Sequence[Column], rows: Sequence[Cells], width: int) -> bool:
    """Whether rows fit into a width as columns, with nothing cut or wrapped."""
    lines = [[Text(column.heading) for column in columns], *([_text(cell) for cell in row] for row in rows)]
    widest = [max(cell.cell_len for cell in column) for column in zip(*lines, strict=True)]
    one_line = all("\n" not in cell.plain for line in lines for cell in line)
    return one_line and sum(widest) + GUTTER * (len(columns) - 1) <= width


def _table(columns: Sequence[Column], rows: Sequence[Sequence[Text]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column.heading, justify="right" if column.is_figure else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _paragraph(columns: Sequence[Column], row: Sequence[Text]) -> tuple[RenderableType, RenderableType]:
    """Return the first cell, and the other values with their headings; empty ones are left out."""
    named = [
        Text.assemble((f"{column.heading} ", "dim"), cell)
        for column, cell in zip(columns[1:], row[1:], strict=True)
        if cell.plain.strip() not in {"", "-"}
    ]
    return row[0], Padding(Text(" · ").join(named), (0, 0, 0, INDENT), expand=False)


def _text(cell: Text | str) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)
