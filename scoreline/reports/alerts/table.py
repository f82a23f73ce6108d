"""Alerts as a table: severity, value, threshold, age; then a line each with the command to type."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from scoreline.formatting import span
from scoreline.reports.alerts.alert import Alert, format_value
from scoreline.reports.alerts.tracker import AlertChange, age_of

STYLES = {"critical": "bold red", "warning": "yellow", "info": "blue"}
NO_ALERTS = "No alert: every value is within its threshold."


def alert_table(changes: Sequence[AlertChange], *, runbook: str | None) -> Iterator[RenderableType]:
    """Render alerts: a table of the figures, then a line each with the command to type."""
    if not changes:
        yield Text(NO_ALERTS, style="green")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("severity", "alert"):
        table.add_column(column, no_wrap=True)
    for column in ("value", "threshold", "age"):
        table.add_column(column, justify="right")
    for each in changes:
        table.add_row(*_row(each))
    yield table
    for each in changes:
        yield Text(_action(each.alert, runbook))
    yield Text()


def _row(change: AlertChange) -> Iterator[Text]:
    alert, severity = change.alert, change.alert.definition.severity
    yield Text(severity, style=STYLES[severity])
    yield Text(alert.name)
    yield Text(format_value(alert.value, alert.unit))
    yield Text(format_value(alert.threshold, alert.unit))
    age = age_of(change)
    yield Text("-" if age is None else span(age))


def _action(alert: Alert, runbook: str | None) -> str:
    link = f"  {alert.definition.runbook(runbook)}" if runbook else ""
    return f"{alert.name}: {alert.message} → {alert.action}{link}"
