"""Alerts over time: each is reported once when it fires and once when it is over."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from eventlog.clock import utc_now
from scoreline.formatting import printable
from scoreline.observability.alerts.definition import RUNBOOK
from scoreline.observability.thresholds import Thresholds
from scoreline.reports.alerts.alert import Alert, evaluate_alerts, postgres_down
from scoreline.reports.alerts.measurement import AlertInputs
from scoreline.reports.alerts.window import AlertWindow
from scoreline.reports.batch_poller import Connectivity
from scoreline.reports.batch_status import is_over
from scoreline.reports.batch_view import BatchView

Key = tuple[str, str]
State = Literal["firing", "over"]


class AlertChange(NamedTuple):
    """An alert that fires, or is over."""

    at: datetime
    state: State
    alert: Alert
    seen_since: datetime | None = None
    """The time of the first view for which its condition held."""


def age_of(change: AlertChange) -> timedelta | None:
    """Return how long the condition is known to have held; None where one view is not enough."""
    begun = [since for since in (change.alert.since, change.seen_since) if since is not None]
    return change.at - min(begun) if begun else None


@dataclass(slots=True)
class AlertTracker:
    """Compares the alerts of successive views of one batch."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    _window: AlertWindow | None = None
    _since: dict[Key, datetime] = field(default_factory=dict)
    """Alerts whose condition holds, reported or not."""
    _reported: dict[Key, Alert] = field(default_factory=dict)

    def update(self, view: BatchView) -> Iterator[AlertChange]:
        """Return what fires and what is over since the last view; nothing more once the batch is over."""
        if is_over(view.snapshot):
            return
        window = self._window
        self._window = window.after(view, self.thresholds) if window else AlertWindow.first(view)
        alerts = evaluate_alerts(AlertInputs(view, self._window, self.thresholds))
        yield from self._changes(alerts, view.snapshot.now)

    def _changes(self, alerts: list[Alert], now: datetime) -> Iterator[AlertChange]:
        active = {(each.name, each.about): each for each in alerts}
        self._since = {key: self._since.get(key, now) for key in active}
        for key in [key for key in self._reported if key not in active]:
            yield AlertChange(now, "over", self._reported.pop(key))
        for key, alert in active.items():
            if key not in self._reported and now - self._since[key] >= alert.hold:
                self._reported[key] = alert
                yield AlertChange(now, "firing", alert, self._since[key])


def alerts_of_one_view(view: BatchView, thresholds: Thresholds) -> list[AlertChange]:
    """Return what fires now, whether or not it has held for long: there will be no second view."""
    alerts = evaluate_alerts(AlertInputs(view, AlertWindow.first(view), thresholds))
    return [AlertChange(view.snapshot.now, "firing", each) for each in alerts]


def alert_line(change: AlertChange, runbook: str | None = None) -> str:
    """Format a change as text, with a link to the runbook where its URL is configured."""
    alert, time = change.alert, f"[{change.at.astimezone(UTC):%H:%M:%S}]"
    if change.state == "over":
        return f"{time} over: {alert.name} ({printable(alert.about)})"
    link = f"  {alert.definition.runbook(runbook)}" if runbook else ""
    return f"{time} ALERT {alert.name}: {alert.message} → {alert.action}{link}"


def alert_json(change: AlertChange, runbook: str | None = None) -> str:
    """Format a change as one line of JSON."""
    alert, age = change.alert, age_of(change)
    return json.dumps(
        {
            "alert": alert.name,
            "severity": alert.definition.severity,
            "state": change.state,
            "at": change.at.isoformat(),
            "about": alert.about,
            "message": alert.message,
            "value": alert.value,
            "threshold": alert.threshold,
            "unit": alert.unit,
            "age_seconds": None if age is None else age.total_seconds(),
            "action": alert.action,
            "runbook": alert.definition.runbook(runbook or RUNBOOK),
        }
    )


@dataclass(frozen=True, slots=True)
class AlertReporter:
    """Writes the alerts of a batch as text or as JSON."""

    write: Callable[[str], None]
    as_json: bool
    tracker: AlertTracker = field(default_factory=AlertTracker)
    runbook: str | None = None

    def update(self, view: BatchView) -> None:
        """Report what changed since the last view."""
        self._report(self.tracker.update(view))

    def report_once(self, view: BatchView) -> list[AlertChange]:
        """Return the alerts that fire now; with JSON output, write them, too."""
        changes = alerts_of_one_view(view, self.tracker.thresholds)
        if self.as_json:
            self._report(changes)
        return changes

    def postgres_changed(self, change: Connectivity) -> None:
        """Report that PostgreSQL stopped answering or answers again, with this process' time."""
        state: State = "firing" if change is Connectivity.LOST else "over"
        self._report([AlertChange(utc_now(), state, postgres_down())])

    def _report(self, changes: Iterable[AlertChange]) -> None:
        for each in changes:
            self.write(alert_json(each, self.runbook) if self.as_json else alert_line(each, self.runbook))
