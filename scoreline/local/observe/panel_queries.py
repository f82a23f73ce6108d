"""Results of panels: every query of every dashboard, sent as Grafana would send it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import AsyncConnection

from grafana.expansion import Window, expand
from grafana.model import Dashboard, Panel, Prom, Query, Sql
from scoreline.local.observe.prometheus import Prometheus, Refused, Series

READER = "SET ROLE scoreline_reader"
"""Grafana's login has this role and no other."""
LONGEST = 200
"""Points that a time series is asked for, at most."""
_IN_LEGEND = re.compile(r"\{\{(\w+)\}\}")
_LABEL_VALUES = re.compile(r"label_values\((\w+), (\w+)\)")


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What one query brought."""

    text: str
    """As it was asked."""
    rows: int = 0
    values: Sequence[tuple[str, object]] = ()
    """What it is of, and how much: of each series the newest, of a table the first row."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class PanelResult:
    """What one panel shows."""

    row: str
    panel: Panel
    results: Sequence[QueryResult]

    @property
    def error(self) -> str:
        """The errors of the queries; empty if all succeeded."""
        return "; ".join(each.error for each in self.results if each.error)

    @property
    def is_lacking(self) -> bool:
        """Whether a query brought nothing that ought to bring something."""
        return not self.panel.quiet and any(not each.rows for each in self.results)


@dataclass(frozen=True, slots=True)
class PanelReader:
    """Asks both servers for what dashboards show in a window of time."""

    prometheus: Prometheus
    postgres: AsyncConnection[tuple[Any, ...]]
    """Whose role may only read."""
    window: Window

    async def dashboard(self, page: Dashboard, values: Mapping[str, str]) -> list[PanelResult]:
        """Ask for every panel of a dashboard."""
        return [
            PanelResult(row.title, panel, [await self.query(query, values) for query in panel.queries])
            for row in page.rows
            for panel in row.panels
        ]

    async def query(self, query: Query, values: Mapping[str, str]) -> QueryResult:
        """Ask one query; an error is an answer too."""
        text = expand(query.text, self.window, values)
        try:
            match query:
                case Prom():
                    # What stands in for nothing is not what a panel is to be judged by.
                    bare = expand(query.expr, self.window, values)
                    return await self._query_prometheus(query, text, bare)
                case Sql():
                    return await self._query_postgres(text)
        except (Refused, psycopg.Error) as error:
            return QueryResult(text, error=str(error).strip())

    async def _query_prometheus(self, query: Prom, text: str, bare: str) -> QueryResult:
        if named := _LABEL_VALUES.fullmatch(text):
            found = await self.prometheus.values(named[1], named[2])
            return QueryResult(text, len(found), [(named[2], each) for each in found])
        answer = await self._series(query, text)
        real = answer if bare == text else await self._series(query, bare)
        return QueryResult(text, len(real), [(_of(query, each), _last(each)) for each in answer])

    async def _series(self, query: Prom, text: str) -> list[Series]:
        since, until = self.window.since, self.window.until
        if query.instant:
            found = await self.prometheus.at(text, until)
        else:
            step = max(1.0, (until - since).total_seconds() / LONGEST)
            found = await self.prometheus.over(text, since, until, step=step)
        return [each for each in found if _last(each) is not None]

    async def _query_postgres(self, text: str) -> QueryResult:
        async with self.postgres.transaction():
            await self.postgres.execute(READER)
            cursor = await self.postgres.execute(text.encode())
            rows = await cursor.fetchall()
            await self.postgres.execute("RESET ROLE")
        names = [column.name for column in cursor.description or ()]
        filled = [row for row in rows if any(value is not None for value in row)]
        return QueryResult(text, len(filled), _pairs(names, filled[0]) if filled else ())


def _last(series: Series) -> float | None:
    """Take the newest number; None where there is none."""
    points = series.get("values") or [series["value"]]
    numbers = [float(value) for _, value in points]
    return next((number for number in reversed(numbers) if not math.isnan(number)), None)


def _of(query: Prom, series: Series) -> str:
    """Return the legend of a series."""
    labels: Mapping[str, str] = series["metric"]
    if query.legend:
        return _IN_LEGEND.sub(lambda found: labels.get(found[1], ""), query.legend)
    return ", ".join(value for name, value in labels.items() if name != "__name__")


def _pairs(names: Sequence[str], row: Sequence[object]) -> list[tuple[str, object]]:
    pairs = zip(names, row, strict=True)
    return [(name, value) for name, value in pairs if value is not None and name != "time"]
