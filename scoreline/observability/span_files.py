"""Spans as JSON lines, a file a process: written here, read by `scoreline trace`."""

import os
from collections.abc import Sequence
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from pydantic_core import to_json

from scoreline.private_files import open_private


class SpanFile(SpanExporter):
    """Appends each span to the file of this process."""

    def __init__(self, folder: Path, job: str) -> None:
        self._job = job
        self._path = folder / f"{job}-{os.getpid()}.jsonl"
        self._file = open_private(self._path)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write spans, each whole line in one go."""
        self._file.write(b"".join(to_json(self._line(span)) + b"\n" for span in spans))
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file."""
        self._file.close()

    def _line(self, span: ReadableSpan) -> dict[str, object]:
        context = span.get_span_context()
        return {
            "trace_id": f"{context.trace_id:032x}" if context else "",
            "span_id": f"{context.span_id:016x}" if context else "",
            "parent_id": f"{span.parent.span_id:016x}" if span.parent else None,
            "name": span.name,
            "job": self._job,
            "pid": os.getpid(),
            "start_ns": span.start_time,
            "end_ns": span.end_time,
            "error": span.status.description,
            "attributes": dict(span.attributes or {}),
        }
