"""Row 0 of the distributed dashboard: what fires."""

from grafana.model import Panel, Prom, Row, Step
from grafana.panels import GOOD, override, stat, table

RUNBOOK = "docs/how-to/operations.md explains each alert and lists the commands to type."
CALM = "nothing fires while all is well"


def _firing(severity: str) -> Prom:
    return Prom(f'count(ALERTS{{alertstate="firing", severity="{severity}"}})', severity, or_zero=True)


def _count(title: str, severity: str, color: str, what: str) -> Panel:
    return stat(
        title,
        _firing(severity),
        shows=what,
        when_red=f"The table below lists them. {RUNBOOK}",
        unit="short",
        steps=(GOOD, Step(1, color)),
        quiet=CALM,
    )


_INCIDENTS = 'ALERTS{alertstate="firing", severity=~"critical|warning"}'
# By itself the subquery would not see what began to fire within the last minute.
_SINCE = f"time() - max(max_over_time(timestamp({_INCIDENTS})[7d:1m]) or timestamp({_INCIDENTS}))"

_ACTIVE = 'ALERTS{alertstate=~"firing|pending"}'
# ALERTS is always 1: the value is recorded beside it, and when it began is in ALERTS_FOR_STATE.
_VALUE = f"0 * {_ACTIVE} + ignoring (alertstate, severity) group_left () eval_alert_value"
_AGE = f"0 * {_ACTIVE} + ignoring (alertstate) group_left () (time() - ALERTS_FOR_STATE)"

ROW = Row(
    "Alerts",
    [
        _count("Critical", "critical", "red", "Critical alerts that fire now: act at once."),
        _count("Warning", "warning", "orange", "Warnings that fire now: investigate today."),
        _count("Info", "info", "blue", "Info alerts that fire now: no action needed."),
        stat(
            "Since the last incident",
            Prom(_SINCE, "since"),
            shows="How long ago the last critical alert or warning fired, of the last seven days.",
            when_red=f"One fires now, or did minutes ago. {RUNBOOK}",
            unit="s",
            steps=(Step(None, "red"), Step(300, "orange"), Step(3600, "green")),
            defaults={"noValue": "none in 7 days"},
            quiet=CALM,
        ),
        table(
            "Active alerts",
            Prom(_VALUE, instant=True, form="table"),
            Prom(_AGE, instant=True, form="table"),
            shows="Alerts that fire, and those whose condition holds but not yet for long enough, each with"
            " the value that its rule measures and with how long the condition has held.",
            when_red=RUNBOOK,
            height=6,
            units={"age": "s"},
            transformations=[
                {"id": "merge", "options": {}},
                {
                    "id": "organize",
                    "options": {
                        "excludeByName": {"Time": True, "__name__": True, "job": True, "instance": True},
                        "indexByName": {"severity": 0, "alertname": 1, "alertstate": 2},
                        "renameByName": {
                            "alertname": "alert",
                            "alertstate": "state",
                            "Value #A": "value",
                            "Value #B": "age",
                        },
                    },
                },
            ],
            extra=[override("severity", custom__cellOptions={"type": "color-text"})],
            quiet=CALM,
        ),
    ],
)
"""How many alerts of each severity, which ones, and how long it has been quiet."""
