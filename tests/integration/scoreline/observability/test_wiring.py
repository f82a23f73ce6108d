"""Telemetry of real processes: `/metrics`, export to a collector, and the absence of secrets."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from domain.batch_spec import BatchSpec, EvaluatorSpec, Limits, TargetSpec, pack
from eventlog import payloads as p
from eventlog.log import Append
from eventlog.redis_streams import RedisEventLog, connect
from taskqueue.backends import Backend, open_queues
from taskqueue.batch_registry import BatchEntry
from taskqueue.queue_layout import QueueLayout
from taskqueue.tasks import Task
from tests.builders import BATCH, event, records
from tests.integration.worker import SCORELINE, ended_in_any_case, environment, free_port, scoreline
from tests.telemetry_document import metrics
from tests.waiting import until

KEY = "sk-planted-0123456789abcdef"
TRACE = "c" * 32
TRACEPARENT = f"00-{TRACE}-{'d' * 16}-01"
OURS = ("Executors", "Event queue of a writer", "Rate limits", "Everywhere")
QUEUE_GAUGES = {"eval_queue_pending_tasks", "eval_queue_owned_tasks"}
REFUSED = 'eval_llm_errors_total{kind="authentication",provider="openai"} 3.0'
OF_THE_COORDINATOR = QUEUE_GAUGES | {"eval_queue_dlq_size"}


class Receiver(BaseHTTPRequestHandler):
    """A model API that repeats the key it receives, and a collector that keeps its requests."""

    got: dict[str, list[bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).got.setdefault(self.path, []).append(body)
        refused = self.path.endswith("/chat/completions")
        reply = json.dumps({"error": {"message": f"bad key {KEY}", "code": "nope"}}).encode()
        self.send_response(401 if refused else 200)
        self.send_header("Content-Type", "application/json" if refused else "application/x-protobuf")
        self.end_headers()
        self.wfile.write(reply if refused else b"")

    def log_message(self, *_words: Any) -> None:
        """Log nothing."""


@contextmanager
def receiver() -> Iterator[tuple[str, dict[str, list[bytes]]]]:
    got: dict[str, list[bytes]] = {}
    handler = type("Handler", (Receiver,), {"got": got})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    serving = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


async def submit(redis_url: str, *targets: TargetSpec, each: int = 1) -> list[str]:
    """Publish, as a coordinator, a batch with a metered and an unmetered target, all of it traced."""
    spec = BatchSpec(
        "batch",
        targets,
        evaluators=(EvaluatorSpec("exact", "exact"),),
        limits=Limits(rpm=60, tpm=1_000_000),  # so few that the lane refuses a permit to any executor
        retries=0,
    )
    layout = QueueLayout(BATCH, spec)
    redis = connect(redis_url)
    log, queues = RedisEventLog(redis), open_queues(Backend.REDIS, redis)
    await queues.batch_registry.upsert(BatchEntry(BATCH, partitions=layout.partitions), pack(spec))
    ids = []
    for variant in range(len(targets)):
        for number in range(each):
            evaluation_id = f"{BATCH}.{variant}{number:07}"
            case = p.Case(id=evaluation_id, input="2 + 2", expected="4")
            opening = p.Queued(case=case, variant=variant, retries=0)
            made = replace(event(opening, evaluation_id=evaluation_id), traceparent=TRACEPARENT)
            await log.append([Append(evaluation_id, records([made]), epoch="")])
            await queues.tasks.enqueue(layout.queue_for(opening), Task(evaluation_id, 1))
            ids.append(evaluation_id)
    await redis.aclose()
    return ids


PACED = TargetSpec("simulated", "paced", {"pass_rate": 1.0}, is_metered=True)


def model(url: str) -> TargetSpec:
    return TargetSpec("openai", "openai/gpt", {"model": "gpt", "base_url": f"{url}/v1"}, is_metered=True)


def fetched(folder: Path) -> str:
    """Return the metrics of the one process that has registered its port."""
    for path in folder.glob("*.json"):
        [entry] = json.loads(path.read_text())
        with urllib.request.urlopen(f"http://{entry['targets'][0]}/metrics", timeout=5) as answer:
            return str(answer.read().decode())
    return ""


@asynccontextmanager
async def executor(redis_url: str, **environ: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    command = [SCORELINE, "worker", "start", "--id", "observed", "--concurrency", "4"]
    given = {"EVAL_REDIS_URL": redis_url, "OPENAI_API_KEY": KEY, "EVAL_WORKER_DRAIN": "1", **environ}
    with ended_in_any_case(command, given) as process:
        yield process
        process.send_signal(signal.SIGTERM)
        await until(lambda: process.poll() is not None, 60)


async def test_an_executor_serves_every_metric_of_the_document(redis_url, tmp_path):
    """Its labels are those of the document, and no metric or span holds a key."""
    with receiver() as (url, _):
        ids = await submit(redis_url, PACED, model(url), each=3)
        files, spans = tmp_path / "targets", tmp_path / "spans"
        environ = {"EVAL_METRICS_PORT": "0", "EVAL_METRICS_DIR": str(files), "EVAL_TRACE_DIR": str(spans)}
        wanted = [each for each in metrics(*OURS, "Task queue") if each.name not in OF_THE_COORDINATOR]
        async with executor(redis_url, **environ):
            await until(lambda: files.exists() and list(files.glob("*.json")), 60)
            await until(lambda: _has(fetched(files), wanted), 60)
            await until(lambda: REFUSED in fetched(files), 60)
            text = fetched(files)
        assert list(files.iterdir()) == []
    for each in wanted:
        labels = _labels(text, each.series[-1])
        assert labels <= set(each.labels), each
        assert f"# TYPE {each.name} {each.kind}" in text
    assert "otel_scope" not in text
    assert "target_info" not in text
    written = "".join(path.read_text() for path in spans.iterdir())
    assert TRACE in written
    assert KEY not in text
    assert KEY not in written
    _draws_the_tree(ids[0], spans)


def _draws_the_tree(evaluation_id: str, spans: Path) -> None:
    drawn = scoreline("trace", evaluation_id, "--dir", str(spans))
    assert drawn.returncode == 0, drawn.stderr
    assert "eval.worker.process_task" in drawn.stdout
    trace = json.loads(scoreline("trace", evaluation_id, "--dir", str(spans), "--json").stdout)
    assert trace["trace_ids"] == [TRACE]
    unknown = scoreline("trace", "unknown", EVAL_TRACE_DIR=str(spans))
    assert unknown.returncode == 1
    assert "EVAL_TRACE_RATIO" in unknown.stderr
    assert "EVAL_TRACE_DIR" in scoreline("trace", "unknown").stderr


def _has(text: str, wanted: list[Any]) -> bool:
    return bool(text) and all(re.search(rf"^{each.series[-1]}[ {{]", text, re.MULTILINE) for each in wanted)


def _labels(text: str, series: str) -> set[str]:
    found = re.findall(rf"^{series}\{{(.*)\}} ", text, re.MULTILINE)
    return {label for labels in found for label in re.findall(r'(\w+)="', labels)}


async def test_a_collector_gets_metrics_and_spans(redis_url):
    """They carry the service name; buffered ones are sent at shutdown."""
    with receiver() as (url, got):
        await submit(redis_url, PACED)
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "EVAL_METRICS_PORT": "1"}
        async with executor(redis_url, **environ):
            await until(lambda: _is_drained(redis_url), 60)
    sent = [ExportMetricsServiceRequest.FromString(body) for body in got["/v1/metrics"]]
    resources = [each for request in sent for each in request.resource_metrics]
    assert {_service(each.resource) for each in resources} == {"scoreline-executor"}
    names = {m.name for each in resources for scope in each.scope_metrics for m in scope.metrics}
    assert {"eval_worker_tasks_processed_total", "eval_event_queue_delay_ms"} <= names
    traces = [ExportTraceServiceRequest.FromString(body) for body in got["/v1/traces"]]
    spans = [
        s for r in traces for each in r.resource_spans for scope in each.scope_spans for s in scope.spans
    ]
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    assert "eval.worker.process_task" in {span.name for span in spans}


async def _is_drained(redis_url: str) -> bool:
    redis = connect(redis_url)
    try:
        [log] = await RedisEventLog(redis).read([f"{BATCH}.00000000"], limit=100)
        return b"completed" in b"".join(field for _, fields in log for field in fields)
    finally:
        await redis.aclose()


def _service(resource: Any) -> str:
    return next(str(each.value.string_value) for each in resource.attributes if each.key == "service.name")


def test_an_unreachable_collector_delays_shutdown_only_briefly():
    """Shutdown does not wait for the SDK's own retries."""
    script = (
        "import time\n"
        "from eventlog import tracing\n"
        "from taskqueue import telemetry\n"
        "from scoreline.settings import Settings\n"
        "from scoreline.observability.wiring import Service, telemetry_for\n"
        "with telemetry_for(Service.EXECUTOR, Settings(trace_ratio=1)):\n"
        "    telemetry.begin()\n"
        "    assert tracing.begin('eval.coordinator.accept', evaluation_id='e')\n"
        "    began = time.monotonic()\n"
        "print(time.monotonic() - began)\n"
    )
    started = time.monotonic()
    took = float(_python(script, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{free_port()}"))
    assert took < 3
    assert time.monotonic() - started < 15


WITHOUT_THE_EXTRA = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
sys.argv = ["scoreline", "worker", "start", "--once"]
from scoreline.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
assert "executor.telemetry" in sys.modules
import json
print(json.dumps([name for name in sys.modules if name.startswith("scoreline.observability.")]))
"""


def test_without_telemetry_the_sdk_is_not_needed(redis_url):
    """A worker without telemetry settings runs without the packages, and imports none of them."""
    loaded = _python(WITHOUT_THE_EXTRA, EVAL_REDIS_URL=redis_url)
    needed = {"logs", "telemetry_settings", "wiring", "thresholds", "alert_settings"}
    assert {name.rpartition(".")[2] for name in json.loads(loaded)} <= needed


@pytest.mark.parametrize("variable", ["EVAL_METRICS_PORT", "EVAL_TRACE_DIR"])
def test_missing_packages_are_an_error_with_the_install_command(variable, redis_url):
    """The process ends."""
    script = WITHOUT_THE_EXTRA.replace("assert not end.code, end.code", "print(end.code)")
    ended = _python(script, EVAL_REDIS_URL=redis_url, **{variable: "0"})
    assert ended.splitlines()[0] == "1"


def test_a_port_in_use_is_an_error_of_one_line(redis_url):
    """The line has the remedy."""
    with receiver() as (url, _):
        taken = url.rpartition(":")[2]
        ended = scoreline("worker", "start", "--once", EVAL_REDIS_URL=redis_url, EVAL_METRICS_PORT=taken)
    assert ended.returncode == 1
    assert f"error: EVAL_METRICS_PORT={taken}: can't listen" in ended.stderr
    assert "Traceback" not in ended.stderr


def _python(script: str, **environ: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=environment(**environ),
        cwd=os.devnull.rpartition("/")[0],
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
