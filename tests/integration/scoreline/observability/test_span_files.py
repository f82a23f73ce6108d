"""Spans of a process in its file, as `scoreline trace` reads them."""

import json
import os
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import StatusCode

from scoreline.observability.span_files import SpanFile
from scoreline.observability.span_reader import spans_of


def write_spans(folder: Path) -> Path:
    """Record a failed call within a task."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(SpanFile(folder, "executor")))
    tracer = provider.get_tracer("test")
    with (
        tracer.start_as_current_span("task", attributes={"evaluation_id": "e-1"}),
        tracer.start_as_current_span("call") as call,
    ):
        call.set_status(StatusCode.ERROR, "overloaded")
    provider.shutdown()
    return folder / f"executor-{os.getpid()}.jsonl"


def test_a_span_has_its_parent_and_its_error(tmp_path: Path):
    """One JSON object per line; the root has no parent."""
    call, task = (json.loads(line) for line in write_spans(tmp_path).read_text().splitlines())
    assert (task["name"], task["parent_id"], task["error"]) == ("task", None, None)
    assert (call["parent_id"], call["trace_id"], call["error"]) == (
        task["span_id"],
        task["trace_id"],
        "overloaded",
    )
    assert (len(task["trace_id"]), len(task["span_id"])) == (32, 16)


def test_what_is_written_is_what_the_reader_finds(tmp_path: Path):
    """Two runs of one process append to one file, which is the owner's alone."""
    for _ in range(2):
        path = write_spans(tmp_path)
    assert [span.name for span in spans_of(tmp_path, "e-1")] == ["task", "call"] * 2
    assert path.stat().st_mode & 0o777 == 0o600
