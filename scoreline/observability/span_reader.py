"""One evaluation's spans, gathered from the files of all processes."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class RecordedSpan:
    """One line of a file."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    job: str
    pid: int
    start_ns: int
    end_ns: int
    error: str | None
    attributes: Mapping[str, Any]

    @property
    def took_ms(self) -> float:
        """Milliseconds from its start to its end."""
        return (self.end_ns - self.start_ns) / 1e6

    def is_of(self, evaluation_id: str) -> bool:
        """Whether it names an evaluation."""
        task = str(self.attributes.get("task_id", "")).rpartition("@")[0]
        return evaluation_id in {self.attributes.get("evaluation_id"), task}


def spans_of(folder: Path, evaluation_id: str) -> list[RecordedSpan]:
    """Read every span of the traces that name an evaluation, in order of their start."""
    named = {span.trace_id for span in _spans(folder, evaluation_id) if span.is_of(evaluation_id)}
    found = [span for trace_id in sorted(named) for span in _spans(folder, trace_id)]
    return sorted((span for span in found if span.trace_id in named), key=lambda span: span.start_ns)


def _spans(folder: Path, mentioned: str) -> Iterator[RecordedSpan]:
    """Read the lines that mention something; one that was cut off by a kill is passed over."""
    sought = json.dumps(mentioned, ensure_ascii=False)[1:-1].encode()
    for path in sorted(folder.glob("*.jsonl")):
        with path.open("rb") as lines:
            for line in lines:
                if sought in line and (span := _span(line)):
                    yield span


def _span(line: bytes) -> RecordedSpan | None:
    try:
        return RecordedSpan(**json.loads(line))
    except (ValueError, TypeError):
        return None
