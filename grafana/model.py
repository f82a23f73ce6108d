"""The elements of a dashboard, before they are rendered as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SQL = Path(__file__).parent / "sql"

Json = dict[str, Any]
"""A piece of a dashboard as Grafana reads it."""


@dataclass(frozen=True, slots=True)
class Prom:
    """A query to Prometheus."""

    expr: str
    legend: str = ""
    instant: bool = False
    """Of this moment alone, for tables and bars; else over the range that is shown."""
    form: str = "time_series"
    or_zero: bool = False
    """Whether nothing means 0, and is to be shown as that."""

    @property
    def text(self) -> str:
        """The query, with Grafana's variables."""
        return f"{self.expr} or vector(0)" if self.or_zero else self.expr


@dataclass(frozen=True, slots=True)
class Sql:
    """A query to Postgres: a file in `grafana/sql`."""

    file: str
    form: str = "table"

    @property
    def text(self) -> str:
        """The statement, with Grafana's macros and variables in it."""
        return (SQL / f"{self.file}.sql").read_text(encoding="utf-8").strip()


Query = Prom | Sql


@dataclass(frozen=True, slots=True)
class Step:
    """From this value on, this colour."""

    value: float | None
    color: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One visualization with its description."""

    title: str
    kind: str
    """Grafana's type of the panel."""
    queries: Sequence[Query]
    shows: str
    when_red: str
    """What an operator does when the panel is red."""
    width: int = 6
    height: int = 8
    unit: str = ""
    steps: Sequence[Step] = (Step(None, "green"),)
    defaults: Json = field(default_factory=dict)
    """More of `fieldConfig.defaults`."""
    options: Json = field(default_factory=dict)
    overrides: Sequence[Json] = ()
    transformations: Sequence[Json] = ()
    links: Sequence[Json] = ()
    quiet: str = ""
    """Why there is nothing to see while all is well; empty where there must be something."""

    @property
    def description(self) -> str:
        """What Grafana shows behind the panel's information sign."""
        return f"{self.shows}\n\n**When red:** {self.when_red}"


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading, laid out from left to right."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Variable:
    """A template variable of a dashboard."""

    name: str
    label: str
    query: Query
    many: bool = False
    """Whether several may be chosen, or all."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One page."""

    uid: str
    file: str
    title: str
    description: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    """Titles of other pages, and where they are."""
    since: str = "now-1h"
    refresh: str = "10s"

    @property
    def panels(self) -> list[Panel]:
        """All panels, as they stand."""
        return [panel for row in self.rows for panel in row.panels]
