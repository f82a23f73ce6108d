"""What is fuzzed: the code under test, inputs for it, and the errors that it documents."""

import asyncio
import gzip
import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.strategies as st

from coordinator.provider_batches import anthropic_batches, reading
from coordinator.provider_batches.result_file import BrokenResultFile, read_results
from eventlog.codec import Entry, OversizeEvent, decode, decode_body, encode, fields_of, read_entry
from eventlog.payloads import Queued, Score
from eventlog.redaction import Redactor
from executor.contract import Fault, Judged, Permanent, Surroundings
from executor.evaluators.extract import compile_pattern, find_last
from executor.evaluators.json_schema import JSON_SCHEMA
from executor.evaluators.llm_verdict import Scale, read_verdict
from executor.evaluators.numeric import number_in
from executor.faults import close_after
from executor.targets import http_replies
from executor.targets.answers import reply
from providers import dialects
from providers.access import Access
from providers.failures import failure_of, refusal_of
from providers.json_reader import UnreadableJson, read_json
from providers.prices import read_prices
from providers.requests import InvalidReply, answer_of
from providers.streams import gathering
from providers.table import PROVIDERS, Sdk
from scoreline.datasets.columns import Columns
from scoreline.datasets.errors import BadRow, DatasetError
from scoreline.datasets.rows import file_rows
from scoreline.spec.errors import SpecError
from scoreline.spec.making import make_plan
from storage_worker.stream_scan import sort_keys
from taskqueue.spec import BatchSpec, TargetSpec, pack, unpack
from taskqueue.template import UnknownField, placeholders, render
from tests.builders import CASE, EVALUATION, PAYLOADS, event
from tests.fuzz import inputs

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FOLDER = tempfile.TemporaryDirectory(prefix="scoreline-fuzz-")
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "text", "text": '{"score": 1, "reason": "so"}'},
        {"type": "tool_use", "input": {"score": 1}},
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": None},
}
CHAT = {
    "choices": [
        {"finish_reason": "stop", "message": {"role": "assistant", "content": "{}", "refusal": None}}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
MESSAGE_EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "4"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
CHAT_EVENTS = [
    {"choices": [{"index": 0, "delta": {"content": "4"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}},
]
SPEC = b"""name: sums
dataset: {path: cases.jsonl, id: key}
prompts: ["{input}", "Reply. {input}"]
target: {type: simulated, rate_limits: {rpm: 60, delay: 1s}}
evaluators: [exact, {type: numeric, tolerance: 0.1}, {type: regex, pattern: "^a+$", timeout: 5m}]
limits: {rpm: 60, tpm: 1e6, max_concurrency: 4, delay: 0.5}
accounts: {openai: {rpm: 10}}
timeout: 1h30m
max_cost: $5
tags: [a, b]
requires: [gpu, region=eu]
"""


class FuzzTarget(NamedTuple):
    """One entry point for what others wrote."""

    name: str
    examples: st.SearchStrategy[bytes]
    exercise: Callable[[bytes], object]
    """Raises what is no documented error, or where a value is not what it should be."""
    seconds: float = 2.0
    """CPU time that one input may take."""


def _codec(body: bytes) -> None:
    for found in (decode(b"1-0", body), decode(b"1-0", body, strict=True)):
        if isinstance(found, Entry):
            try:
                written = encode(found.event)
            except OversizeEvent:
                continue
            assert decode_body(written) == found.event


def _wire(body: bytes) -> None:
    read_entry(EVALUATION, (b"1-0", body.split(b"\n")))
    sort_keys(body.split(b"\n"), shards=4)


def _wire_fields(kind: str) -> bytes:
    written = event(PAYLOADS[kind], sequence=3)
    fields = fields_of(written, encode(written))
    return b"\n".join(
        str(part).encode() if not isinstance(part, bytes) else part
        for pair in fields.items()
        for part in pair
    )


def _dataset(suffix: str, *, records: str | None = None) -> Callable[[bytes], None]:
    path = Path(FOLDER.name, f"cases{suffix}")

    def exercise(body: bytes) -> None:
        path.write_bytes(gzip.compress(body, 1) if suffix.endswith(".gz") else body)
        try:
            for row in file_rows(path, Columns(records=records)):
                encode(event(Queued(case=row.case)))
        except (DatasetError, BadRow) as error:
            _refuse_long_message(error)

    return exercise


def _refuse_long_message(error: Exception) -> None:
    assert len(str(error)) < 20_000, "the message is as long as the input"


def _damaged_gzip(body: bytes) -> None:
    path = Path(FOLDER.name, "damaged.jsonl.gz")
    path.write_bytes(body)
    with suppress(DatasetError, BadRow):
        list(file_rows(path))


def _spec(body: bytes) -> None:
    path = Path(FOLDER.name, "scoreline.yaml")
    path.write_bytes(body)
    try:
        plan = make_plan(path, {}, folder=path.parent)
    except SpecError:
        return
    assert unpack(pack(plan.batch)) == plan.batch


def _stored_spec(body: bytes) -> None:
    try:
        unpack(body)
    except ValueError:
        return


def _prices(body: bytes) -> None:
    path = Path(FOLDER.name, "prices.json")
    path.write_bytes(body)
    read_prices.cache_clear()
    try:
        read_prices(path)
    except ValueError:
        return


def _reply(body: bytes) -> None:
    """Read a reply as an answer, as a refusal and as a verdict."""
    try:
        message = read_json(body)
    except UnreadableJson:
        return
    access = Access(PROVIDERS["openai"], "gpt", "http://127.0.0.1/v1", "key")
    for status in (200, 400, 404, 429, 500):
        failure = failure_of(refusal_of(status, message), access)
        _closed(Permanent(failure.kind, failure.message))
    try:
        answered = answer_of(message)
    except InvalidReply as error:
        _closed(Permanent("invalid_response", str(error)))
        return
    try:
        reply(answered.output, latency_ms=1.0)
        verdict = read_verdict(message, Scale(0.0, 1.0, 0.5))
        Score(evaluator="judge", score=verdict.score, passed=verdict.passed, reason=verdict.reason)
    except Fault as fault:
        _closed(fault)


def _closed(fault: Fault) -> None:
    """Close an attempt after a fault, and write its event."""
    encode(event(close_after(fault, retries=1, attempt=1, now=NOW, luck=0.5), sequence=3))


def _stream(sdk: Sdk) -> Callable[[bytes], None]:
    def exercise(body: bytes) -> None:
        try:
            pieces = read_json(body)
        except UnreadableJson:
            return
        gathered = gathering(sdk)
        try:
            for piece in pieces if isinstance(pieces, list) else [pieces]:
                if isinstance(piece, dict):
                    gathered.add(piece)
            assert isinstance(gathered.text, str)
            assert isinstance(gathered.is_whole, bool)
            answer_of(gathered.whole())
        except InvalidReply as error:
            _closed(Permanent("invalid_response", str(error)))

    return exercise


def _batch_results(body: bytes) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 37):
            yield body[at : at + 37]

    async def read() -> None:
        target = TargetSpec("anthropic", "claude", {"model": "claude"})
        async for line in read_results(pieces(), provider_id="batch", longest=100_000):
            reading.read(anthropic_batches._result(line), target, None)

    try:
        asyncio.run(read())
    except BrokenResultFile:
        return


def _http_reply(body: bytes) -> None:
    text = body.decode(errors="replace")
    for paths in (
        http_replies.Paths(),
        http_replies.Paths("a.0", "usage", "cost"),
        http_replies.Paths("text"),
    ):
        try:
            http_replies.answer_of(text, paths, latency_ms=1.0)
        except Fault as fault:
            _closed(fault)
    for status in (302, 404, 408, 429, 503):
        refused = http_replies.fault_of(status, {"retry-after": text, "date": text}, text, now=NOW)
        assert refused is not None
        _closed(refused)


def _headers(body: bytes) -> None:
    text = body.decode("latin-1")
    for dialect in (dialects.ANTHROPIC, dialects.OPENAI, dialects.CEREBRAS):
        for name in (*dialect.requests, *dialect.tokens):
            found = {name.limit: "10", name.remaining: "0", name.reset: text, "date": text}
            dialects.wait_for(dialects.limits_of(dialect, found, now=NOW))
            dialects.limits_of(dialect, {**found, name.limit: text, name.remaining: text}, now=NOW)
    for header in ("retry-after", "retry-after-ms"):
        dialects.retry_after({header: text, "date": text}, now=NOW)
    http_replies.text_encoding(text)


def _template(body: bytes) -> None:
    template, _, rest = body.decode(errors="replace").partition("\n")
    try:
        found = json.loads(rest)
    except (ValueError, RecursionError):
        found = {}
    fields: dict[str, Any] = found if isinstance(found, dict) else {}
    placeholders(template)
    try:
        render(template, fields)
    except UnknownField:
        return


def _regex(body: bytes) -> None:
    pattern, _, text = body.decode(errors="replace").partition("\n")
    try:
        compiled = compile_pattern(pattern)
    except ValueError:
        return
    try:
        asyncio.run(find_last(compiled, text))
    except Permanent as fault:
        if fault.kind != "slow_pattern":
            raise


def _evaluators(body: bytes) -> None:
    schema, _, output = body.decode(errors="replace").partition("\n")
    number_in(output)
    try:
        options = {"schema": json.loads(schema)}
        JSON_SCHEMA.check(options)
    except (ValueError, RecursionError):
        return
    try:
        asyncio.run(
            JSON_SCHEMA.make("json_schema", options, Surroundings()).judge(Judged(CASE, output, {}))
        )
    except Permanent:
        return


def _redaction(body: bytes) -> None:
    redactor = Redactor(frozenset({"s3cr3t-canary/+", "pass word"}))
    assert isinstance(redactor.redact(body.decode(errors="replace")), str)


ROWS = [
    {"id": "a", "input": "1 + 1", "expected": "2", "tags": ["x"], "metadata": {"level": 1}},
    {"id": "b", "input": {"q": [1]}},
]
LINES = "\n".join(map(json.dumps, ROWS)).encode()
TABLE = b'id,input,expected,tags,metadata\na,"1 +\n1",2,"x, y","{""level"": 3}"\nb,2,,"[""c""]",\n'
YAML = b"""rows:
- {id: a, input: 1 + 1, <<: {level: 2}}
- id: b
  input: |
    two
    lines
  n: [1, 0x1F, 1.5, ~]
"""
RESULT = b"".join(
    inputs.packed({"custom_id": f"r{number}", "result": result}) + b"\n"
    for number, result in enumerate(
        (
            {"type": "succeeded", "message": MESSAGE},
            {
                "type": "errored",
                "error": {"type": "error", "error": {"type": "api_error", "message": "no"}},
            },
            {"type": "expired"},
        )
    )
)
DATES = (b"5", b"0.5", b"6m0s", b"20ms", b"2026-01-01T00:00:30Z", b"Thu, 01 Jan 2026 00:00:30 GMT")
PATTERNS = (
    b"(a+)+$\n" + b"a" * 40 + b"!",
    rb"A:\s*(.+)$" + b"\nA: 4\nA: 5",
    rb"(\d+)\.(\d*)" + b"\n1.5",
    rb"(?i)(?P<x>\w)(?P=x)|^$" + b"\nbook",
)
SCHEMA = (
    b'{"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "number"}}}'
)

TARGETS = (
    FuzzTarget(
        "codec",
        inputs.documents(*(json.loads(encode(event(each, sequence=3))) for each in PAYLOADS.values())),
        _codec,
    ),
    FuzzTarget(
        "wire entries",
        inputs.texts(*(_wire_fields(kind) for kind in PAYLOADS), b"eval:{00}:events:a"),
        _wire,
    ),
    FuzzTarget("dataset jsonl", inputs.texts(LINES), _dataset(".jsonl")),
    FuzzTarget(
        "dataset json", inputs.texts(inputs.packed(ROWS), inputs.packed({"rows": ROWS})), _dataset(".json")
    ),
    FuzzTarget(
        "dataset json records",
        inputs.texts(inputs.packed({"a": [[]], "rows": ROWS})),
        _dataset(".json", records="rows"),
    ),
    FuzzTarget("dataset csv", inputs.texts(TABLE), _dataset(".csv")),
    FuzzTarget(
        "dataset yaml", inputs.texts(YAML, YAML.partition(b"\n")[2], inputs.packed(ROWS)), _dataset(".yaml")
    ),
    FuzzTarget("dataset yaml records", inputs.texts(YAML), _dataset(".yml", records="rows")),
    FuzzTarget("dataset gzip", inputs.texts(gzip.compress(LINES), gzip.compress(LINES) * 2), _damaged_gzip),
    FuzzTarget("spec", inputs.texts(SPEC), _spec),
    FuzzTarget(
        "stored spec",
        inputs.documents(json.loads(pack(BatchSpec("x", (TargetSpec("simulated", "s"),))))),
        _stored_spec,
    ),
    FuzzTarget(
        "prices", inputs.documents({"prices": [{"models": "openai/*", "input": 1, "output": 2}]}), _prices
    ),
    FuzzTarget(
        "model reply",
        inputs.documents(MESSAGE, CHAT, {"error": {"type": "api_error", "message": "no"}}),
        _reply,
    ),
    FuzzTarget("model stream anthropic", inputs.documents(MESSAGE_EVENTS), _stream(Sdk.ANTHROPIC)),
    FuzzTarget("model stream openai", inputs.documents(CHAT_EVENTS), _stream(Sdk.OPENAI)),
    FuzzTarget("provider batch results", inputs.texts(RESULT), _batch_results),
    FuzzTarget(
        "http reply",
        inputs.documents({"a": ["4"], "usage": {"input": 1}, "cost": 0.5, "text": "4"}),
        _http_reply,
    ),
    FuzzTarget("reply headers", inputs.texts(*DATES), _headers),
    FuzzTarget("template", inputs.texts(b'{a.b.0} {{x}} {c}\n{"a": {"b": [1]}, "c": null}'), _template),
    FuzzTarget("regex", inputs.texts(*PATTERNS), _regex, seconds=7.0),
    FuzzTarget("evaluators", inputs.texts(SCHEMA + b'\n{"a": 1}', b"true\n1,234.50 %"), _evaluators),
    FuzzTarget(
        "redaction", inputs.texts(b"key=s3cr3t-canary/+ pass%20word czNjcjN0LWNhbmFyeS8r"), _redaction
    ),
)
