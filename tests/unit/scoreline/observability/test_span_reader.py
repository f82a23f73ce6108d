"""Spans are read from the files of all processes."""

import json
from pathlib import Path

from scoreline.observability.span_reader import RecordedSpan, spans_of
from tests.telemetry_document import metrics, spans
from tests.unit.scoreline.observability.spans import span


def _written(folder: Path, name: str, *spans: RecordedSpan, tail: str = "") -> None:
    lines = [json.dumps({each: getattr(span, each) for each in RecordedSpan.__slots__}) for span in spans]
    (folder / name).write_text("\n".join([*lines, tail]))


def test_the_spans_of_an_evaluation_are_gathered_from_all_processes(tmp_path):
    """Spans of the trace that do not name the evaluation are included; a truncated line is skipped."""
    _written(tmp_path, "submitter-1.jsonl", span("accept", 1, evaluation_id="e-1"), tail='{"trace_id": "t1')
    _written(tmp_path, "executor-2.jsonl", span("ask", 3, 2), span("task", 2, 1, task_id="e-1@1"))
    assert [each.name for each in spans_of(tmp_path, "e-1")] == ["accept", "task", "ask"]
    assert spans_of(tmp_path, "e") == []
    assert spans_of(tmp_path, "e-12") == []


def test_the_document_can_be_read():
    """The JSON document holds the ids and times that other programs need."""
    known = {each.name: each for each in metrics()}
    assert known["eval_worker_slots"].labels == {"worker_id": (), "state": ("busy", "free")}
    assert known["eval_lane_tpm_limit"].kind == "gauge"
    assert known["eval_rate_limit_wait_ms"].series[0] == "eval_rate_limit_wait_ms_bucket"
    assert {each.kind for each in known.values()} == {"counter", "gauge", "histogram"}
    assert "eval.queue.nack" in {each.name for each in spans()}
    assert len(known) == len(metrics())
