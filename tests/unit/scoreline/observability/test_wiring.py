"""Which telemetry a process exports, where it registers its port, and how spans are read from files."""

import io
import json
import logging
import re
import threading
import time
from pathlib import Path

import pytest
from rich.console import Console

from eventlog import tracing
from providers.extras import install_command
from scoreline.command_error import CommandError
from scoreline.local.storage_workers import worker_environ
from scoreline.observability.logs import JsonFormatter
from scoreline.observability.shutdown import within
from scoreline.observability.span_reader import RecordedSpan, spans_of
from scoreline.observability.tree import branches, document, draw
from scoreline.observability.wiring import ENDPOINT, Service, TelemetryPlan, check_installed, telemetry_plan
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings, SettingsError, load_settings
from tests import telemetry
from tests.telemetry_document import metrics, spans

SERVERS = Servers("redis://localhost", "postgresql://localhost/x")


def test_telemetry_is_off_by_default():
    """A folder for target files has no effect without a port."""
    assert not telemetry_plan(Service.EXECUTOR, Settings(metrics_dir=Path("m")), {}).anything
    assert telemetry_plan(Service.EXECUTOR, Settings(metrics_port=0), {}) == TelemetryPlan(
        False, True, False
    )
    assert telemetry_plan(Service.EXECUTOR, Settings(trace_dir=Path("t")), {}) == TelemetryPlan(
        False, False, True
    )


def test_a_collector_is_preferred_to_a_port():
    """Metrics are exported once."""
    plan = telemetry_plan(
        Service.EXECUTOR, Settings(metrics_port=9_464), {ENDPOINT: "http://127.0.0.1:4318"}
    )
    assert plan == TelemetryPlan(True, False, False)


def test_a_submitting_process_takes_no_port():
    """The port belongs to the processes it starts."""
    assert not telemetry_plan(Service.SUBMITTER, Settings(metrics_port=9_464), {}).anything


def test_children_of_a_fleet_have_ports_of_their_own():
    """A single process has the configured port."""
    settings = Settings(metrics_port=9_464, metrics_dir=Path("m"), trace_dir=Path("t"), trace_ratio=0.5)
    environ = worker_environ(settings, SERVERS)
    ports = {
        name: value for name, value in environ.items() if name.startswith(("EVAL_METRICS", "EVAL_TRACE"))
    }
    assert ports == {
        "EVAL_METRICS_PORT": "0",
        "EVAL_METRICS_HOST": "127.0.0.1",
        "EVAL_METRICS_DIR": "m",
        "EVAL_TRACE_DIR": "t",
        "EVAL_TRACE_RATIO": "0.5",
    }
    assert worker_environ(settings, SERVERS, alone=True)["EVAL_METRICS_PORT"] == "9464"
    assert "EVAL_METRICS_PORT" not in worker_environ(Settings(), SERVERS)


@pytest.mark.parametrize(
    ("name", "value"),
    [("EVAL_METRICS_PORT", "70000"), ("EVAL_TRACE_RATIO", "1.5"), ("EVAL_TRACE_DIRS", "x")],
)
def test_settings_that_make_no_sense_are_refused(name, value):
    """The error names the setting."""
    with pytest.raises(SettingsError, match=name):
        load_settings({name: value})


def test_missing_packages_are_named_with_the_way_to_get_them():
    """A missing package is an error with the install command, not a traceback."""
    with pytest.raises(CommandError, match=re.escape(install_command("otel"))):
        check_installed(lambda _name: None)
    check_installed()


def test_a_shutdown_that_hangs_is_cut_short():
    """The process can end although the exporter does not answer."""
    never = threading.Event()
    started = time.monotonic()
    assert not within(0.05, never.wait)
    assert time.monotonic() - started < 5
    never.set()
    assert within(5, lambda: None)


def test_log_lines_name_the_span_they_are_made_in():
    """Only where the evaluation is traced."""
    record = logging.makeLogRecord({"msg": "hello", "evaluation_id": "e-1"})
    assert "trace_id" not in json.loads(JsonFormatter().format(record))
    with telemetry.tracing_spans(), tracing.span("a", f"00-{'a' * 32}-{'b' * 16}-01") as span:
        line = json.loads(JsonFormatter().format(record))
    assert line["trace_id"] == "a" * 32
    assert line["span_id"] == f"{span.get_span_context().span_id:016x}"
    assert line["evaluation_id"] == "e-1"


def _span(name: str, number: int, above: int | None = None, **attributes: object) -> RecordedSpan:
    at = 1_000_000_000 + number * 1_000_000
    parent = None if above is None else str(above)
    return RecordedSpan(
        "t1", str(number), parent, name, "executor", 7, at, at + 2_500_000, None, attributes
    )


def _written(folder: Path, name: str, *spans: RecordedSpan, tail: str = "") -> None:
    lines = [json.dumps({each: getattr(span, each) for each in RecordedSpan.__slots__}) for span in spans]
    (folder / name).write_text("\n".join([*lines, tail]))


def test_the_spans_of_an_evaluation_are_gathered_from_all_processes(tmp_path):
    """Spans of the trace that do not name the evaluation are included; a truncated line is skipped."""
    _written(
        tmp_path, "submitter-1.jsonl", _span("accept", 1, evaluation_id="e-1"), tail='{"trace_id": "t1'
    )
    _written(tmp_path, "executor-2.jsonl", _span("ask", 3, 2), _span("task", 2, 1, task_id="e-1@1"))
    assert [each.name for each in spans_of(tmp_path, "e-1")] == ["accept", "task", "ask"]
    assert spans_of(tmp_path, "e") == []
    assert spans_of(tmp_path, "e-12") == []


def test_the_tree_has_each_span_below_its_own():
    """Spans are ordered by start; a span whose parent is in no file is at the top level."""
    tree = branches([_span("ask", 3, 2), _span("task", 2, 1), _span("accept", 1), _span("lost", 4, 99)])
    drawn = [(each.span.name, each.depth, each.offset_ms) for each in tree]
    assert drawn == [("accept", 0, 0.0), ("task", 1, 1.0), ("ask", 2, 2.0), ("lost", 0, 3.0)]


def test_the_tree_is_drawn_with_times_and_what_matters():
    """Control characters in an attribute are escaped."""
    console = Console(width=160, record=True, file=io.StringIO())
    draw(console, "e-1", [_span("accept", 1), _span("ask", 2, 1, target="a\x1b[31mb", batch_id="b")])
    text = console.export_text()
    assert "2 spans of 1 processes · 3.5 ms" in text
    assert "  ask" in text
    assert "target=a\\x1b[31mb" in text
    assert "batch_id" not in text
    assert document("e-1", [_span("accept", 1)])["spans"][0]["duration_ms"] == 2.5


def test_the_document_can_be_read():
    """The JSON document holds the ids and times that other programs need."""
    known = {each.name: each for each in metrics()}
    assert known["eval_worker_slots"].labels == {"worker_id": (), "state": ("busy", "free")}
    assert known["eval_lane_tpm_limit"].kind == "gauge"
    assert known["eval_rate_limit_wait_ms"].series[0] == "eval_rate_limit_wait_ms_bucket"
    assert {each.kind for each in known.values()} == {"counter", "gauge", "histogram"}
    assert "eval.queue.nack" in {each.name for each in spans()}
    assert len(known) == len(metrics())
