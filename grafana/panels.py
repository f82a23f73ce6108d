"""The kinds of pictures that are used here, each with the options that Grafana wants of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from grafana.model import Json, Panel, Query, Step

GOOD = Step(None, "green")
NEUTRAL = (Step(None, "blue"),)
_LAST: Json = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_ROWS: Json = {"calcs": [], "fields": "", "values": True}


def rising(warn: float, alarm: float) -> tuple[Step, ...]:
    """Good while low."""
    return GOOD, Step(warn, "orange"), Step(alarm, "red")


def falling(alarm: float, warn: float) -> tuple[Step, ...]:
    """Good while high."""
    return Step(None, "red"), Step(alarm, "orange"), Step(warn, "green")


def _panel(
    title: str,
    kind: str,
    queries: Sequence[Query],
    usual: Json,
    rest: Json,
) -> Panel:
    """Build a panel from the defaults of its kind and the options of this one."""
    defaults = {**usual.get("defaults", {}), **rest.get("defaults", {})}
    return Panel(title, kind, queries, **{**usual, **rest, "defaults": defaults})


def stat(title: str, *queries: Query, text: bool = False, **rest: Any) -> Panel:  # noqa: ANN401 - Panel's own
    """Show one number, or with `text` one word."""
    options: Json = {
        "reduceOptions": {**_LAST, "fields": "/.*/" if text else ""},
        "colorMode": "value" if text else "background",
        "graphMode": "none" if text else "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "auto",
        "wideLayout": True,
    }
    return _panel(title, "stat", queries, {"height": 4, "options": options}, rest)


def gauge(title: str, *queries: Query, largest: float, **rest: Any) -> Panel:  # noqa: ANN401 - as above
    """Show one number on a scale."""
    options: Json = {
        "reduceOptions": _LAST,
        "orientation": "auto",
        "showThresholdLabels": False,
        "showThresholdMarkers": True,
        "minVizHeight": 75,
        "minVizWidth": 75,
        "sizing": "auto",
    }
    defaults = {"min": 0, "max": largest}
    return _panel(title, "gauge", queries, {"height": 5, "options": options, "defaults": defaults}, rest)


def series(title: str, *queries: Query, stacked: bool = False, **rest: Any) -> Panel:  # noqa: ANN401 - as above
    """Draw lines over time, one upon the other where they add up."""
    custom = {
        "drawStyle": "line",
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "fillOpacity": 60 if stacked else 10,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "showPoints": "auto",
        "spanNulls": 60_000,
        "axisPlacement": "auto",
        "axisSoftMin": 0,
        "thresholdsStyle": {"mode": "dashed" if len(rest.get("steps", ())) > 1 else "off"},
    }
    options: Json = {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    usual = {"width": 12, "options": options, "defaults": {"custom": custom}}
    return _panel(title, "timeseries", queries, usual, rest)


def bars(title: str, *queries: Query, of_rows: bool = False, **rest: Any) -> Panel:  # noqa: ANN401 - as above
    """Draw a bar for each series, or for each row of a table."""
    options: Json = {
        "reduceOptions": _ROWS if of_rows else _LAST,
        "orientation": "horizontal",
        "displayMode": "gradient",
        "valueMode": "color",
        "namePlacement": "auto",
        "showUnfilled": True,
        "sizing": "auto",
        "minVizHeight": 16,
        "minVizWidth": 8,
        "maxVizHeight": 300,
    }
    defaults: Json = {"min": 0}
    return _panel(title, "bargauge", queries, {"options": options, "defaults": defaults}, rest)


def columns(title: str, *queries: Query, across: str, **rest: Any) -> Panel:  # noqa: ANN401 - as above
    """Draw a column for each row of a table; `across` names the column of labels."""
    options: Json = {
        "xField": across,
        "orientation": "vertical",
        "showValue": "auto",
        "stacking": "none",
        "barWidth": 0.9,
        "groupWidth": 0.7,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return _panel(title, "barchart", queries, {"width": 12, "options": options}, rest)


def heat(title: str, *queries: Query, unit: str, **rest: Any) -> Panel:  # noqa: ANN401 - as above
    """Draw the buckets of a histogram over time."""
    options: Json = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "fill": "orange"},
        "filterValues": {"le": 1e-9},
        "rowsFrame": {"layout": "auto"},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": unit},
        "legend": {"show": True},
        "tooltip": {"mode": "single", "showColorScale": False, "yHistogram": False},
        "showValue": "never",
    }
    return _panel(title, "heatmap", queries, {"unit": unit, "width": 12, "options": options}, rest)


def table(
    title: str,
    *queries: Query,
    units: Mapping[str, str] | None = None,
    leads: Mapping[str, str] | None = None,
    extra: Sequence[Json] = (),
    **rest: Any,  # noqa: ANN401 - as above
) -> Panel:
    """List rows; `units` and `leads` (where a click leads to) are by column."""
    overrides = [override(name, unit=unit) for name, unit in (units or {}).items()]
    overrides += [override(name, links=[link(name, url)]) for name, url in (leads or {}).items()]
    options: Json = {
        "showHeader": True,
        "cellHeight": "sm",
        "footer": {"show": False, "reducer": ["sum"], "countRows": False, "fields": ""},
    }
    usual = {"width": 24, "options": options, "overrides": [*overrides, *extra]}
    return _panel(title, "table", queries, usual, rest)


def states(
    title: str,
    *queries: Query,
    colors: Mapping[str, str],
    words: Mapping[str, str] | None = None,
    **rest: Any,  # noqa: ANN401 - as above
) -> Panel:
    """Draw which state something was in, over time; `words` are for states that are numbers."""
    options: Json = {
        "mergeValues": True,
        "showValue": "always",
        "alignValue": "left",
        "rowHeight": 0.9,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    defaults = {"mappings": mappings(colors, words), "custom": {"fillOpacity": 80, "lineWidth": 0}}
    usual = {"width": 24, "options": options, "defaults": defaults}
    return _panel(title, "state-timeline", queries, usual, rest)


def mappings(colors: Mapping[str, str], texts: Mapping[str, str] | None = None) -> list[Json]:
    """Give values a colour, and words where they are numbers."""
    labels = texts or {}
    return [
        {
            "type": "value",
            "options": {
                value: {"color": color, "index": place, "text": labels.get(value, value)}
                for place, (value, color) in enumerate(colors.items())
            },
        }
    ]


def override(column: str, **properties: Any) -> Json:  # noqa: ANN401 - whatever Grafana knows
    """Set properties of one column."""
    return {
        "matcher": {"id": "byName", "options": column},
        "properties": [
            {"id": name.replace("__", "."), "value": value} for name, value in properties.items()
        ],
    }


def link(title: str, url: str) -> Json:
    """Lead somewhere with a click."""
    return {"title": f"Open {title}", "url": url, "targetBlank": False}


def joined(by: str, names: Mapping[str, str]) -> list[Json]:
    """Put several tables of Prometheus side by side; `names` renames `Value #A` and so on."""
    hidden = {"Time": True, **{f"Time {number}": True for number in range(1, len(names) + 1)}}
    return [
        {"id": "joinByField", "options": {"byField": by, "mode": "outer"}},
        {"id": "organize", "options": {"excludeByName": hidden, "renameByName": dict(names)}},
    ]
