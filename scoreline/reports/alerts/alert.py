"""The alerts that fire for one view of a batch. Pure."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from scoreline.formatting import printable, span
from scoreline.invocation import as_started
from scoreline.observability.alerts.definition import AlertDefinition, Unit
from scoreline.observability.alerts.table import ALERTS
from scoreline.reports.alerts.checks import BATCH_CHECKS, FLEET_CHECKS
from scoreline.reports.alerts.measurement import AlertInputs, Measurement
from scoreline.reports.batch_status import is_over

_NONE = timedelta()
POSTGRES_DOWN = "PostgresDown"
"""Fires when no view can be read at all."""


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert whose condition holds."""

    definition: AlertDefinition
    about: str
    """The subject; with the name, the alert's identity."""
    message: str
    action: str
    """The command to type first."""
    value: float
    threshold: float | None = None
    hold: timedelta = _NONE
    """How long the condition must hold before the alert is reported: the next view may end it."""
    since: datetime | None = None
    """When the condition began, where that is known."""

    @property
    def name(self) -> str:
        """The alert's name."""
        return self.definition.name

    @property
    def unit(self) -> Unit:
        """The unit of value and threshold."""
        return self.definition.polled_condition.unit


def evaluate_alerts(inputs: AlertInputs) -> list[Alert]:
    """Return the alerts that fire, processes first; none for a batch that is over or has none pending."""
    snapshot = inputs.view.snapshot
    if is_over(snapshot) or not snapshot.progress.pending:
        return []
    checks = BATCH_CHECKS if snapshot.kind == "external" else FLEET_CHECKS | BATCH_CHECKS
    return [
        alert for name, check in checks.items() for alert in _firing(ALERTS[name], check(inputs), inputs)
    ]


def postgres_down() -> Alert:
    """Return the alert that PostgreSQL does not answer."""
    definition = ALERTS[POSTGRES_DOWN]
    action = definition.polled.action if definition.polled else ""
    return Alert(definition, "postgres", definition.polled_message({}), as_started(action), 0, 1)


def format_value(value: float | None, unit: Unit) -> str:
    """Format a value with its unit."""
    match unit:
        case _ if value is None:
            return "-"
        case Unit.SHARE:
            return f"{value:.0%}"
        case Unit.SECONDS:
            return f"{value:.0f} s" if value < 120 else span(timedelta(seconds=round(value)))
        case Unit.COUNT:
            return f"{value:,.0f}"
        case Unit.RATE:
            return f"{value:,.2g}/s"


def _firing(
    definition: AlertDefinition, measurements: Iterable[Measurement], inputs: AlertInputs
) -> Iterator[Alert]:
    condition = definition.polled_condition
    for each in measurements:
        if condition.holds(each.value, inputs.thresholds):
            yield _alert(definition, each, inputs)


def _alert(definition: AlertDefinition, measured: Measurement, inputs: AlertInputs) -> Alert:
    condition, polled = definition.polled_condition, definition.polled
    limit = condition.limit(inputs.thresholds)
    fields = {
        "batch_id": printable(inputs.view.snapshot.batch_id),
        "value": format_value(measured.value, condition.unit),
        "threshold": format_value(limit, condition.unit),
        **measured.fields,
    }
    detail = measured.detail.replace("{value}", fields["value"])
    return Alert(
        definition,
        measured.about,
        " ".join(filter(None, (definition.polled_message(fields), detail))),
        _action(definition, fields, is_local=bool(inputs.view.snapshot.run_id)),
        measured.value,
        limit,
        getattr(inputs.thresholds, polled.hold) if polled and polled.hold else _NONE,
        measured.since,
    )


def _action(definition: AlertDefinition, fields: dict[str, str], *, is_local: bool) -> str:
    polled = definition.polled
    if polled is None:
        return ""
    template = polled.local_action if is_local and polled.local_action else polled.action
    return as_started(template.format_map({name: shlex.quote(value) for name, value in fields.items()}))
