"""The tables of `docs/reference/telemetry.md`, compared with `/metrics`, dashboards and alerts.

metrics("Executors", "Rate limits")   -> the metrics of some sections; of all, where none is named
spans()                               -> the spans of both tables
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference" / "telemetry.md"
_WORD = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric, as Prometheus knows it; `labels` has the values that are known beforehand."""

    section: str
    name: str
    kind: str
    labels: dict[str, tuple[str, ...]]

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which its values are found."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{part}" for part in ("bucket", "count", "sum"))
        return (self.name,)


@dataclass(frozen=True, slots=True)
class Span:
    """One span, by its name."""

    name: str
    where: str
    attributes: tuple[str, ...]


def metrics(*sections: str) -> list[Metric]:
    """Read the metrics of the document."""
    return [
        Metric(section, name, kind, _labels(labels))
        for section, (names, kind, labels, _) in _rows("## Metrics", columns=4)
        if not sections or section in sections
        for name in _WORD.findall(names)
    ]


def spans() -> list[Span]:
    """Read the spans of the document."""
    return [
        Span(name, where, tuple(_WORD.findall(attributes)))
        for _, (names, where, attributes) in _rows("## Traces", columns=3)
        for name in _WORD.findall(names)
    ]


def _rows(chapter: str, *, columns: int) -> Iterator[tuple[str, list[str]]]:
    text = DOCUMENT.read_text(encoding="utf-8").split(f"\n{chapter}\n")[1].split("\n## ")[0]
    section = ""
    for line in text.splitlines():
        if line.startswith("### "):
            section = line.removeprefix("### ")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == columns:
            yield section, cells


def _labels(cell: str) -> dict[str, tuple[str, ...]]:
    """Read `a`, `b` (`x`, `y`)."""
    found = re.findall(r"`(\w+)`(?: \(([^)]*)\))?", cell)
    return {name: tuple(_WORD.findall(values)) for name, values in found}
