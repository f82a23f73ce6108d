"""Every field of every event with every extreme value, through real Postgres and every reader.

An event either is quarantined with its reason or round-trips: stored byte for byte, verified, exported,
shown by status and replay. Neither outcome may disturb the other evaluations of the batch.
"""

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings
from psycopg import AsyncConnection

from eventlog.codec import Entry, encode, read_entry
from eventlog.events import is_in_range
from eventlog.keys import DEFAULT_SHARDS
from eventlog.time_range import EARLIEST, LATEST
from projections.database.connection import make_pool
from projections.ledger.postgres import PostgresLedger
from projections.queries.evaluation_history import read_history
from scoreline.reports.replay.document import document
from scoreline.reports.replay.history_builder import SourceRecords, build_history
from tests.builders import BATCH, PAYLOADS, START, event, history
from tests.integration.scoreline.batch_harness import Harness, harness

PATHS: dict[str, list[str]] = {
    "queued": [
        "case.id", "case.input", "case.expected", "case.metadata", "answer.output", "answer.cost_usd",
        "answer.usage.input_tokens", "epoch", "variant", "repetition", "retries", "reason",
    ],
    "provisioning": ["executor", "nonce", "runtime"],
    "running": ["target", "process"],
    "responded": ["output", "usage.input_tokens", "usage.output_tokens",
                  "cost_usd", "latency_ms", "cached"],
    "scored": ["evaluator", "score", "passed", "reason", "usage.output_tokens", "cost_usd"],
    "completed": [
        "verdict", "score", "usage.input_tokens", "cost_usd", "latency_ms", "output", "exit_code", "scores",
    ],
    "retrying": ["error.kind", "error.message", "retry_at"],
    "failed": ["error.kind", "error.message"],
    "timed_out": ["limit", "seconds"],
    "cancelled": ["by", "reason"],
}  # fmt: skip
"""Fields of each payload."""
LIVES = {
    "completed": "queued provisioning running responded scored completed",
    "retrying": "queued provisioning running retrying",
    "failed": "queued provisioning running failed",
    "timed_out": "queued provisioning running timed_out",
    "cancelled": "cancelled",
}
"""A history that contains the type, by the type that ends it."""
EXTREMES = [
    '"0001-01-01T00:00:00+01:00"', '"9999-12-31T23:59:59-05:00"', '"9999-12-31T23:59:59Z"',
    '"0001-01-01T00:00:00Z"', '"2026-01-01T00:00:00.123456789Z"', '"2026-01-01T00:00:00+23:59"',
    '"1731800000"', "1731800000", "-99999999999999", '"2026-01-01 00:00:00,5+00:00"',
    "0", "-1", "32768", "2147483648", "9007199254740993", "9223372036854775808", "1" * 30, "9" * 4_000,
    "1e400", "-1e400", "1e-400", "5e-324", "1.7976931348623157e308", "1e12", "0.1", "-0.0", "1e131072",
    "NaN", "-Infinity", "true", "null", '"yes"', '"1"', '"0.5"', '""', "[]", "{}", "[1e999]",
    '"\\ud800"', '"\\u0000"', '"\\udbff\\udfff\\ufffe"', '"\x7f\u2028\u202e"', f'"{"n" * 200}"',
    '"' + "\U0010ffff" * 200 + '"', f'"{"n" * 201}"', f'"{"x" * 530_000}"', "[" * 150 + "]" * 150,
    "[" * 5_000 + "]" * 5_000, '{"a": 1, "a": 2}',
]  # fmt: skip
"""Raw JSON, or nearly."""
ENVELOPE = ["occurred_at", "source", "traceparent", "attempt", "sequence", "schema_version", "batch_id"]
MARK = "@extreme@"
NUMBERS = st.integers().map(str) | st.floats().map(repr)
TIMES = st.datetimes(timezones=st.timezones()).map(lambda at: json.dumps(at.isoformat()))
TEXTS = st.text(max_size=30).map(json.dumps)


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Harness]:
    async with harness(postgres_url, redis_url) as made:
        yield made


def mutated(body: bytes, path: list[str], raw: str) -> bytes:
    """Insert raw JSON at a place of an envelope."""
    found = json.loads(body)
    at = found
    for name in path[:-1]:
        at = at.setdefault(name, {"output": ""} if name == "answer" else {})
    at[path[-1]] = MARK
    return json.dumps(found).replace(f'"{MARK}"', raw).encode("utf-8", "surrogatepass")


def every_place() -> Iterator[tuple[str, str, list[str]]]:
    """Choose a history, one of its types, and one field of that event."""
    for life, words in LIVES.items():
        for word in words.split():
            if life in {"completed", word}:
                yield from ((words, word, ["data", *path.split(".")]) for path in PATHS[word])
                yield from ((words, word, [name]) for name in ENVELOPE)


def add(here: Harness, key: str, place: tuple[str, str, list[str]], raw: str) -> None:
    """Append a history with one extreme value to its stream."""
    words, word, path = place
    for each in history(words, evaluation_id=key):
        body = encode(each)
        if each.type == word:
            body = mutated(body, path, raw)
        here.place.world.xadd(each, event=body)


async def test_every_extreme_value_is_quarantined_or_survives_every_reader(
    here: Harness, tmp_path: Path
) -> None:
    """One batch of all of them, and two ordinary evaluations: status, export, verify and replay work."""
    keys: list[str] = []
    for place, (words, word, path) in enumerate(every_place()):
        for at, raw in enumerate(EXTREMES):
            # All values in the fields that differ most; elsewhere every third, in turns.
            if word in {"queued", "completed", "retrying"} or (at + place) % 3 == 0:
                keys.append(f"x-{len(keys):05}-{word}-{'.'.join(path)}-{at}")
                add(here, keys[-1], (words, word, path), raw)
    ordinary = [history(LIVES["completed"], evaluation_id=f"ordinary-{at}") for at in (1, 2)]
    here.place.world.xadd(*ordinary[0], *ordinary[1])
    keys += ["ordinary-1", "ordinary-2"]
    await here.place.worker.store(keys)

    assert not [str(each) for each in await here.place.differences()]
    accounted = await here.place.ask(
        "SELECT evaluation_id FROM evaluations UNION SELECT evaluation_id FROM quarantine"
    )
    assert {key for (key,) in accounted} >= set(keys)
    [(cards,)] = await here.place.ask("SELECT count(*) FROM scorecards WHERE evaluation_id ~ '^ordinary'")
    assert cards == 2
    for arguments in (["status", BATCH], ["status", BATCH, "--json"], ["dlq", BATCH], ["list"]):
        ran = await here.run(*arguments)
        assert ran.exit_code in {0, 1}, (arguments, ran.output)
        assert ran.exception is None or isinstance(ran.exception, SystemExit), (arguments, ran.exception)
    for suffix in ("jsonl", "csv", "xml"):
        ran = await here.run("export", BATCH, "-o", str(tmp_path / f"out.{suffix}"))
        assert ran.exit_code == 0, (suffix, ran.output, ran.exception)
    for line in (tmp_path / "out.jsonl").read_text("utf-8").rstrip("\n").split("\n"):
        json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    async with await AsyncConnection.connect(here.place.url) as conn:
        for key in keys:
            json.dumps(
                document(build_history(SourceRecords(key, await read_history(conn, key)))), allow_nan=False
            )


@settings(max_examples=300, deadline=None)
@given(
    place=st.sampled_from(list(every_place())),
    raw=st.one_of(st.sampled_from(EXTREMES), NUMBERS, TIMES, TEXTS),
)
@example(place=("", "running", ["occurred_at"]), raw='"0001-01-01T00:00:00+01:00"')
def test_an_entry_read_from_a_stream_is_in_range_and_round_trips(
    place: tuple[str, str, list[str]], raw: str
) -> None:
    """An entry is refused, or its time converts to any zone and a stored copy equals it."""
    _, word, path = place
    good = event(PAYLOADS[word], sequence=0 if word in {"queued", "cancelled"} else 2)
    body = mutated(encode(good), path, raw)
    envelope = json.loads(encode(good))
    fields = [b"attempt", b"%d" % envelope["attempt"], b"sequence", b"%d" % envelope["sequence"], b"type"]
    read = read_entry(good.evaluation_id, (b"1-0", [*fields, word.encode(), b"event", body]))
    if isinstance(read, Entry):
        assert is_in_range(read.event.occurred_at)
        read.event.occurred_at.astimezone(UTC)
        again = read_entry(good.evaluation_id, (b"1-0", [*fields, word.encode(), b"event", read.body]))
        assert again == read


STORED = ["-infinity", "0044-03-15 12:00:00+00 BC", "0001-01-01 00:00:00+01", "9999-12-31 23:59:59-05",
          "20000-01-01 00:00:00+00", "infinity"]  # fmt: skip


@pytest.mark.parametrize("stored", STORED)
async def test_times_of_an_earlier_release_are_clamped_by_every_reader(
    here: Harness, stored: str, tmp_path: Path
) -> None:
    """Rows that PostgreSQL holds and Python cannot represent fail no page of rows."""
    await here.submit("odd", ["passed", "dead"])
    await here.place.conn.execute("UPDATE events SET occurred_at = %s, recorded_at = %s", [stored, stored])
    await here.place.conn.execute("UPDATE scorecards SET ended_at = %s", [stored])
    await here.place.conn.execute("UPDATE evaluations SET ended_at = %s, updated_at = %s", [stored, stored])
    for arguments in (
        ["status", "odd"],
        ["dlq", "odd"],
        ["export", "odd", "-o", str(tmp_path / "o.jsonl")],
    ):
        ran = await here.run(*arguments)
        assert ran.exit_code == 0, (arguments, ran.output, ran.exception)
    expected = EARLIEST if stored in STORED[:3] else LATEST
    [(ended,)] = await here.place.ask("SELECT DISTINCT ended_at FROM scorecards")
    assert ended == expected
    differences = await here.place.differences("odd")
    assert {each.table for each in differences} == {"events", "evaluations", "scorecards"}


async def test_event_stored_by_an_earlier_release_verifies_and_rebuilds(here: Harness) -> None:
    """A body with a time at the end of the calendar is read as the clamped time that its row gives."""
    await here.place.store(history(LIVES["completed"], evaluation_id="old"))
    at = '"9999-12-31T23:59:59-05:00"'
    await here.place.conn.execute(
        "UPDATE events SET occurred_at = '9999-12-31 23:59:59-05',"
        ' event = regexp_replace(event::text, \'"occurred_at":"[^"]*"\', \'"occurred_at":\' || %s)::json',
        [at],
    )
    await here.place.conn.execute("UPDATE scorecards SET ended_at = '9999-12-31 23:59:59-05'")
    await here.place.conn.execute("UPDATE evaluations SET ended_at = '9999-12-31 23:59:59-05'")
    assert await here.place.differences() == []
    await here.place.rebuild()
    assert await here.place.differences() == []


async def test_retry_time_in_another_notation_is_due(here: Harness) -> None:
    """A stored `retry_at` that PostgreSQL cannot cast does not fail the query for the whole batch."""
    await here.submit("odd", ["queued+provisioning+running+retrying"] * 2)
    await here.place.conn.execute(
        "UPDATE events SET event = replace(event::text, '\"2026-01-01T01:00:00Z\"', '1731800000')::json"
        " WHERE type = 'retrying' AND evaluation_id ~ '1$'"
    )
    async with make_pool(here.place.url, size=1) as pool:
        ledger = PostgresLedger(pool, shards=DEFAULT_SHARDS)
        batch = await ledger.batch("odd")
        assert batch is not None
        due = await ledger.due_retries(batch, now=START - timedelta(days=1), limit=10)
    assert [state.row.evaluation_id[-1] for state in due] == ["1"]
