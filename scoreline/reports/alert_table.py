"""The alerts of one look as a table: severity, value, threshold, age; and what to type."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from scoreline.formatting import span
from scoreline.observability.runbook import runbook_link
from scoreline.reports.alert_measure import severity_of, written
from scoreline.reports.alerts import Trouble
from scoreline.reports.alerts_told import News, age_of

STYLES = {"critical": "bold red", "warning": "yellow", "info": "blue"}
NO_ALERTS = "No alert: nothing is beyond its threshold."


def alert_table(news: Sequence[News], *, runbook: str | None) -> Iterator[RenderableType]:
    """Write alerts for people: a table of the figures, then a line each with what to type."""
    if not news:
        yield Text(NO_ALERTS, style="green")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("severity", "alert"):
        table.add_column(column, no_wrap=True)
    for column in ("value", "threshold", "age"):
        table.add_column(column, justify="right")
    for each in news:
        table.add_row(*_row(each))
    yield table
    for each in news:
        yield Text(_action(each.trouble, runbook))
    yield Text()


def _row(news: News) -> Iterator[Text]:
    trouble, severity = news.trouble, severity_of(news.trouble.name)
    yield Text(severity, style=STYLES[severity])
    yield Text(trouble.name)
    measure = trouble.measure
    yield Text(written(measure.value, measure.unit) if measure else "-")
    yield Text(written(measure.threshold, measure.unit) if measure else "-")
    age = age_of(news)
    yield Text("-" if age is None else span(age))


def _action(trouble: Trouble, runbook: str | None) -> str:
    link = f"  {runbook_link(trouble.name, runbook)}" if runbook else ""
    return f"{trouble.name}: {trouble.words} → {trouble.action}{link}"
