"""From a dashboard to the JSON that Grafana reads. Pure: the same dashboard, the same text."""

import json
from collections.abc import Iterator, Sequence
from string import ascii_uppercase

from grafana.model import Dashboard, Json, Panel, Prom, Query, Step, Variable

SCHEMA_VERSION = 39
COLUMNS = 24
PROMETHEUS: Json = {"type": "prometheus", "uid": "${prometheus}"}
POSTGRES: Json = {"type": "grafana-postgresql-datasource", "uid": "${postgres}"}


def rendered(dashboard: Dashboard) -> str:
    """Write a dashboard as the file that is checked in."""
    return json.dumps(document(dashboard), indent=2, ensure_ascii=False) + "\n"


def document(dashboard: Dashboard) -> Json:
    """Build a dashboard's JSON."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": ["scoreline"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "timezone": "browser",
        "refresh": dashboard.refresh,
        "time": {"from": dashboard.since, "to": "now"},
        "annotations": {"list": [_alerts()]},
        "links": [_link(title, address) for title, address in dashboard.links.items()],
        "templating": {"list": [*_sources(), *map(_variable, dashboard.variables)]},
        "panels": list(_panels(dashboard)),
    }


def _alerts() -> Json:
    """Mark on every time series when something critical began to fire."""
    return {
        "name": "Critical alerts",
        "datasource": PROMETHEUS,
        "enable": True,
        "iconColor": "red",
        "expr": 'ALERTS{alertstate="firing", severity="critical"}',
        "titleFormat": "{{alertname}}",
        "step": "60s",
    }


def _link(title: str, address: str) -> Json:
    return {
        "title": title,
        "type": "link",
        "url": address,
        "icon": "dashboard",
        "keepTime": True,
        "includeVars": False,
        "targetBlank": False,
        "asDropdown": False,
        "tags": [],
        "tooltip": "",
    }


def _sources() -> Iterator[Json]:
    for name, label, source in (
        ("prometheus", "Prometheus", PROMETHEUS),
        ("postgres", "Postgres", POSTGRES),
    ):
        yield {
            "name": name,
            "label": label,
            "type": "datasource",
            "query": source["type"],
            "hide": 0,
            "multi": False,
            "includeAll": False,
            "refresh": 1,
            "regex": "",
            "skipUrlSync": False,
        }


def _variable(variable: Variable) -> Json:
    asked = variable.query
    is_prom, text = isinstance(asked, Prom), asked.text
    return {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": PROMETHEUS if is_prom else POSTGRES,
        "query": {"query": text, "refId": "A", "qryType": 1} if is_prom else text,
        "definition": text,
        "refresh": 2,
        "sort": 0,
        "multi": variable.many,
        "includeAll": variable.many,
        **({"allValue": ".*"} if variable.many else {}),
        "hide": 0,
        "regex": "",
        "skipUrlSync": False,
    }


def _panels(dashboard: Dashboard) -> Iterator[Json]:
    """Lay rows and panels out: ids count up, panels flow from left to right."""
    number = top = 0
    for row in dashboard.rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1},
            "panels": [],
        }
        top += 1
        for line in _lines(row.panels):
            left = 0
            for panel in line:
                number += 1
                place = {"x": left, "y": top, "w": panel.width, "h": panel.height}
                yield _panel(panel, number, place)
                left += panel.width
            top += max(panel.height for panel in line)


def _lines(panels: Sequence[Panel]) -> Iterator[list[Panel]]:
    line: list[Panel] = []
    for panel in panels:
        if sum(each.width for each in line) + panel.width > COLUMNS:
            yield line
            line = []
        line = [*line, panel]
    if line:
        yield line


def _panel(panel: Panel, number: int, place: Json) -> Json:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "gridPos": place,
        "datasource": _source(panel.queries[0]),
        "targets": [
            _target(query, letter) for query, letter in zip(panel.queries, ascii_uppercase, strict=False)
        ],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": list(panel.overrides)},
        "options": dict(panel.options),
        "transformations": list(panel.transformations),
        "links": list(panel.links),
    }


def _defaults(panel: Panel) -> Json:
    unit = {"unit": panel.unit} if panel.unit else {}
    steps = {"mode": "absolute", "steps": [_step(step) for step in panel.steps]}
    return {**unit, "thresholds": steps, **panel.defaults}


def _step(step: Step) -> Json:
    return {"value": step.value, "color": step.color}


def _source(query: Query) -> Json:
    return PROMETHEUS if isinstance(query, Prom) else POSTGRES


def _target(query: Query, letter: str) -> Json:
    if isinstance(query, Prom):
        return {
            "refId": letter,
            "datasource": PROMETHEUS,
            "editorMode": "code",
            "expr": query.text,
            "legendFormat": query.legend or "__auto",
            "instant": query.instant,
            "range": not query.instant,
            "format": query.form,
        }
    return {
        "refId": letter,
        "datasource": POSTGRES,
        "editorMode": "code",
        "rawQuery": True,
        "rawSql": query.text,
        "format": query.form,
    }
