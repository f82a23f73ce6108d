"""Files and wire entries under fuzzing: datasets, specs, prices, events."""

import gzip
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from domain.batch_spec import BatchSpec, TargetSpec, pack, unpack
from eventlog.codec import Entry, OversizeEvent, decode, decode_body, encode, fields_of, read_entry
from eventlog.payloads import Queued
from providers.prices import read_prices
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.errors import DatasetError, RowError
from scoreline.submit.datasets.rows import file_rows
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.errors import SpecError
from storage_worker.stream_scan import sort_page
from tests.builders import EVALUATION, PAYLOADS, event
from tests.fuzz import inputs
from tests.fuzz.target import FuzzTarget

FOLDER = tempfile.TemporaryDirectory(prefix="scoreline-fuzz-")
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
    sort_page(body.split(b"\n"), shards=4)


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
        except (DatasetError, RowError) as error:
            _refuse_long_message(error)

    return exercise


def _refuse_long_message(error: Exception) -> None:
    assert len(str(error)) < 20_000, "the message is as long as the input"


def _damaged_gzip(body: bytes) -> None:
    path = Path(FOLDER.name, "damaged.jsonl.gz")
    path.write_bytes(body)
    with suppress(DatasetError, RowError):
        list(file_rows(path))


def _spec(body: bytes) -> None:
    path = Path(FOLDER.name, "scoreline.yaml")
    path.write_bytes(body)
    try:
        plan = make_plan(path, {}, folder=path.parent)
    except SpecError:
        return
    assert unpack(pack(plan.spec)) == plan.spec


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


FILE_TARGETS = (
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
)
