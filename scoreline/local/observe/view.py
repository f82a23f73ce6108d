"""The values of dashboard panels as tables and as a JSON document."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from grafana.model import Dashboard
from scoreline.local.observe.numbers import figure
from scoreline.local.observe.panel_queries import PanelResult, QueryResult

SERIES_SHOWN = 3
Found = Mapping[str, Sequence[PanelResult]]
"""By the title of their dashboard."""


def show(console: Console, pages: Sequence[Dashboard], found: Found) -> None:
    """Print every panel with what it shows."""
    for page in pages:
        console.print()
        console.print(Text(page.title, style="bold underline"))
        for row, panels in groupby(found[page.title], key=lambda shown: shown.row):
            console.print(_table(row, list(panels)))


def _table(row: str, panels: Sequence[PanelResult]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", show_header=True)
    table.add_column(row, width=42)
    table.add_column("")
    for shown in panels:
        table.add_row(Text(shown.panel.title), _values_text(shown))
    return table


def _values_text(shown: PanelResult) -> Text:
    if shown.error:
        return Text(shown.error, style="bold red")
    if shown.is_lacking:
        return Text("no data", style="bold red")
    if not any(each.values for each in shown.results):
        return Text(f"no data: {shown.panel.quiet}", style="dim")
    unit = "" if shown.panel.kind == "heatmap" else shown.panel.unit  # its unit is that of the axis
    return Text(" · ".join(part for result in shown.results for part in _parts(result, unit)))


def _parts(result: QueryResult, unit: str) -> Iterator[str]:
    for name, value in result.values[:SERIES_SHOWN]:
        yield f"{name} {figure(value, unit)}".strip()
    if (more := len(result.values) - SERIES_SHOWN) > 0:
        yield f"and {more} more"


def problems(found: Found) -> list[str]:
    """List the panels that have an error or lack data."""
    lines = []
    for page, panels in found.items():
        for shown in panels:
            if shown.error or shown.is_lacking:
                asked = next((each.text for each in shown.results if each.error or not each.rows), "")
                what = shown.error or "no data"
                lines.append(f"{page} / {shown.row} / {shown.panel.title}: {what}: {asked}")
    return lines


def document(found: Found, *, seconds: float) -> dict[str, Any]:
    """Write it for machines."""
    return {
        "dashboards": {page: [_panel(shown) for shown in panels] for page, panels in found.items()},
        "problems": problems(found),
        "seconds": round(seconds, 1),
    }


def _panel(shown: PanelResult) -> dict[str, Any]:
    return {
        "row": shown.row,
        "panel": shown.panel.title,
        "rows": [result.rows for result in shown.results],
        "values": [(name, _plain(value)) for result in shown.results for name, value in result.values],
        "error": shown.error,
        "quiet": shown.panel.quiet,
    }


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str) else str(value)
