"""Expansion of the Grafana macros and variables that the dashboards use. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

_CALL = re.compile(r"\$__(timeFilter|timeGroup|timeFrom|timeTo)\(([^()]*)\)")
_NAMED = re.compile(r"\$\{(\w+)(?::(\w+))?\}|\$([A-Za-z_]\w*)")


class UnknownMacro(ValueError):  # noqa: N818 - named after what is unknown
    """A macro or variable that is not defined."""


@dataclass(frozen=True, slots=True)
class Window:
    """The stretch of time that a dashboard shows, and how finely."""

    since: datetime
    until: datetime
    interval: timedelta
    rate_interval: timedelta

    def named(self) -> dict[str, str]:
        """Return the durations that queries may name."""
        return {
            "__interval": _seconds(self.interval),
            "__rate_interval": _seconds(self.rate_interval),
            "__range": _seconds(self.until - self.since),
        }


def expand(text: str, window: Window, values: Mapping[str, str]) -> str:
    """Expand a query as a dashboard with these values would for this window."""
    known = {**window.named(), **values}
    calls = _CALL.sub(lambda found: _called(found[1], found[2], window), text)
    return _NAMED.sub(lambda found: _valued(found[1] or found[3], found[2], known), calls)


def _called(macro: str, arguments: str, window: Window) -> str:
    match macro:
        case "timeFilter":
            return f"{arguments} BETWEEN {_time(window.since)} AND {_time(window.until)}"
        case "timeFrom":
            return _time(window.since)
        case "timeTo":
            return _time(window.until)
        case _:
            column, _, _ = arguments.partition(",")
            width = max(1, int(window.interval.total_seconds()))
            return f"floor(extract(epoch from {column.strip()})/{width})*{width}"


def _valued(name: str, form: str | None, known: Mapping[str, str]) -> str:
    if name not in known:
        raise UnknownMacro(f"nothing is known as ${name}")
    value = known[name]
    if form is None:
        return value
    if form != "sqlstring":
        raise UnknownMacro(f"{form} is not a form that is used here")
    return "'" + value.replace("'", "''") + "'"


def _time(moment: datetime) -> str:
    return f"'{moment.isoformat()}'"


def _seconds(stretch: timedelta) -> str:
    return f"{max(1, int(stretch.total_seconds()))}s"
