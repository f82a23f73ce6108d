"""Log lines and their span."""

import json
import logging

from eventlog import tracing
from scoreline.observability.logs import JsonFormatter
from tests import telemetry


def test_log_lines_name_the_span_they_are_made_in():
    """Only where the evaluation is traced."""
    record = logging.makeLogRecord({"msg": "hello", "evaluation_id": "e-1"})
    assert "trace_id" not in json.loads(JsonFormatter().format(record))
    with telemetry.tracing_spans(), tracing.span("a", f"00-{'a' * 32}-{'b' * 16}-01") as span:
        line = json.loads(JsonFormatter().format(record))
    assert line["trace_id"] == "a" * 32
    assert line["span_id"] == f"{span.get_span_context().span_id:016x}"
    assert line["evaluation_id"] == "e-1"
