"""One evaluation's spans as a tree across processes, for people and for machines."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scoreline.formatting import excerpt
from scoreline.observability.span_reader import RecordedSpan

KNOWN_FROM_ABOVE = frozenset({"evaluation_id", "batch_id", "task_id"})
"""Attributes that are the same all over a trace."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A span in its place."""

    span: RecordedSpan
    depth: int
    offset_ms: float
    """Since the first span began."""


def branches(spans: Sequence[RecordedSpan]) -> list[Branch]:
    """Put spans in order: each after the one above it, those of one parent by their start."""
    here = {span.span_id for span in spans}
    below: defaultdict[str | None, list[RecordedSpan]] = defaultdict(list)
    for span in sorted(spans, key=lambda span: span.start_ns):
        below[span.parent_id if span.parent_id in here else None].append(span)
    first = min((span.start_ns for span in spans), default=0)
    return list(_walk(below, None, 0, first))


def _walk(
    below: dict[str | None, list[RecordedSpan]], above: str | None, depth: int, first: int
) -> Iterator[Branch]:
    for span in below.get(above, ()):
        yield Branch(span, depth, (span.start_ns - first) / 1e6)
        yield from _walk(below, span.span_id, depth + 1, first)


def document(evaluation_id: str, spans: Sequence[RecordedSpan]) -> dict[str, Any]:
    """Return the same as a JSON document."""
    return {
        "evaluation_id": evaluation_id,
        "trace_ids": sorted({span.trace_id for span in spans}),
        "spans": [
            {
                **asdict(each.span),
                "depth": each.depth,
                "offset_ms": round(each.offset_ms, 3),
                "duration_ms": round(each.span.took_ms, 3),
            }
            for each in branches(spans)
        ],
    }


def draw(console: Console, evaluation_id: str, spans: Sequence[RecordedSpan]) -> None:
    """Draw the tree."""
    lasted = (max(span.end_ns for span in spans) - min(span.start_ns for span in spans)) / 1e6
    processes = len({(span.job, span.pid) for span in spans})
    console.print(
        Text(f"{evaluation_id} · {len(spans)} spans of {processes} processes · {_milliseconds(lasted)}")
    )
    console.print(Text(f"trace {', '.join(sorted({span.trace_id for span in spans}))}", style="dim"))
    table = Table(box=None, pad_edge=False)
    for heading in ("offset", "took"):
        table.add_column(heading, justify="right")
    for heading in ("span", "process"):
        table.add_column(heading, no_wrap=True)
    table.add_column("", overflow="fold")
    for each in branches(spans):
        table.add_row(*_row(each))
    console.print(table)


def _row(branch: Branch) -> Iterable[Text]:
    span = branch.span
    yield Text(_milliseconds(branch.offset_ms))
    yield Text(_milliseconds(span.took_ms))
    yield Text(f"{'  ' * branch.depth}{excerpt(span.name, 60)}")
    yield Text(f"{excerpt(span.job, 20)} {span.pid}", style="dim")
    details = [f"{name}={value}" for name, value in span.attributes.items() if name not in KNOWN_FROM_ABOVE]
    details += [f"ended with {span.error}"] if span.error else []
    yield Text(excerpt(" ".join(details), 200))


def _milliseconds(value: float) -> str:
    return f"{value / 1000:,.2f} s" if value >= 10_000 else f"{value:,.1f} ms"
