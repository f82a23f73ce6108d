"""Invalid input stops only its own evaluation, is kept with its reason, and can be looked up."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from eventlog.codec import encode, fields_of
from eventlog.keys import DEFAULT_SHARDS, events_key, shard_of, wake_key
from tests.builders import event, history
from tests.integration.worker import Site, scoreline, site, worker
from tests.waiting import until

Fields = dict[str, Any]
LIFE = "queued provisioning running responded completed"
MEGABYTES = 1024 * 1024


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    async with site(redis_url, postgres_url) as made:
        yield made


def running(key: str, **envelope: Any) -> Fields:
    """The next event with some fields of its envelope changed; the stream's fields agree with it."""
    good = json.loads(encode(event("running", evaluation_id=key, sequence=2)))
    spoilt = good | envelope
    named = {name: spoilt[name] for name in ("attempt", "sequence", "type")}
    return named | {"event": json.dumps(spoilt)}


def with_body(key: str, body: bytes) -> Fields:
    return running(key) | {"event": body}


def illegal(key: str) -> Fields:
    done = event("completed", evaluation_id=key, sequence=2)
    return dict(fields_of(done, encode(done)))


def running_in(key: str, process: str) -> Fields:
    body = json.dumps(json.loads(running(key)["event"]) | {"data": {"target": "x", "process": "PROCESS"}})
    return with_body(key, body.replace('"PROCESS"', process).encode())


POISONS: dict[str, tuple[str, Callable[[str], Fields]]] = {
    "garbage": ("garbage", lambda key: with_body(key, b"\x00\x01 not JSON")),
    "not-utf8": ("garbage", lambda key: with_body(key, b'{"type": "running", "source": "\xff\xfe"}')),
    "no-event-field": ("garbage", lambda _: {"hello": b"\xff world"}),
    "not-an-object": ("garbage", lambda key: with_body(key, b"[1, 2]")),
    "nan": ("garbage", lambda key: running_in(key, "NaN")),
    "lone-surrogate": ("garbage", lambda key: running_in(key, r'"\ud800"')),
    "deep-nesting": ("garbage", lambda key: running_in(key, "[" * 50_000 + "]" * 50_000)),
    "unknown-type": ("unknown_type", lambda key: running(key, type="exploded")),
    "future-version": ("future_version", lambda key: running(key, schema_version=99)),
    "ten-megabytes": ("oversize", lambda key: running_in(key, f'"{"x" * 10 * MEGABYTES}"')),
    "field-disagrees": ("mismatch", lambda key: running(key) | {"sequence": 3}),
    "type-disagrees": ("mismatch", lambda key: running(key) | {"type": "completed"}),
    "other-evaluation": ("mismatch", lambda _: running("another")),
    "wrong-batch": ("mismatch", lambda key: running(key, batch_id="another batch")),
    "conflict": (
        "conflict",
        lambda key: (
            running(key, type="provisioning", sequence=1)
            | {"event": encode(event("provisioning", evaluation_id=key, sequence=1, source="forger"))}
        ),
    ),
    "attempt-zero": ("invalid", lambda key: running(key, attempt=0)),
    "attempt-huge": ("invalid", lambda key: running(key, attempt=2**70)),
    "sequence-negative": ("invalid", lambda key: running(key, sequence=-1)),
    "no-time-zone": ("invalid", lambda key: running(key, occurred_at="2026-01-01T00:00:00")),
    "extra-field": ("invalid", lambda key: running(key, **{"\x1b[2J": "clears a screen"})),
    "illegal": ("illegal", illegal),
}
"""By name: the reason of the quarantine, and the fields of the entry."""


async def completed(here: Site, evaluation_id: str) -> bool:
    return await here.state(evaluation_id) == "completed"


async def nothing_pending(here: Site) -> bool:
    return await here.pending() == 0


async def all_quarantined(here: Site) -> bool:
    return all([await here.reasons(name) for name in POISONS])


@pytest.mark.parametrize("name", POISONS)
async def test_bad_entry_stops_only_its_own_evaluation(here: Site, name: str) -> None:
    """An evaluation written at the same time completes; the bad entry is quarantined with its reason."""
    reason, fields_for = POISONS[name]
    await here.add_plainly(history("queued provisioning", evaluation_id="bad"))
    await here.add_fields("bad", fields_for("bad"))
    await here.add_plainly(history(LIFE, evaluation_id="neighbour"))
    async with worker(here):
        await until(lambda: completed(here, "neighbour"))
        await until(lambda: here.reasons("bad"))
        await until(lambda: nothing_pending(here))
        await here.add_plainly(history(LIFE, evaluation_id="another"))
        await until(lambda: completed(here, "another"))
    assert await here.reasons("bad") == [reason]
    assert await here.state("bad") == "provisioning"
    assert await here.rows("SELECT total, completed FROM batch_status") == [(3, 2)]


async def test_quarantine_lists_everything_and_shows_each(here: Site) -> None:
    """`quarantine list` prints every bad entry with its reason, `show` prints its bytes."""
    for name, (_, fields_for) in POISONS.items():
        await here.add_plainly(history("queued provisioning", evaluation_id=name))
        await here.add_fields(name, fields_for(name))
    async with worker(here):
        await until(lambda: all_quarantined(here))
    urls = {"EVAL_REDIS_URL": here.redis_url, "EVAL_POSTGRES_URL": here.postgres_url}

    listed = [
        json.loads(line) for line in scoreline("quarantine", "list", "--json", **urls).stdout.splitlines()
    ]
    assert {one["evaluation_id"]: one["reason"] for one in listed} == {
        n: r for n, (r, _) in POISONS.items()
    }
    assert all(one["detail"] for one in listed)
    for_people = scoreline("quarantine", "list", **urls)
    assert all(one["id"][:12] in for_people.stdout for one in listed)
    assert "\x1b" not in for_people.stdout
    only = scoreline("quarantine", "list", "--reason", "oversize", "--json", **urls).stdout
    assert [json.loads(line)["evaluation_id"] for line in only.splitlines()] == ["ten-megabytes"]

    by_name = {one["evaluation_id"]: one["id"] for one in listed}
    shown = json.loads(scoreline("quarantine", "show", "--json", by_name["not-utf8"], **urls).stdout)
    assert r"\xff\xfe" in shown["body"]
    assert "forger" in scoreline("quarantine", "show", by_name["conflict"], **urls).stdout
    for_people = scoreline("quarantine", "show", by_name["extra-field"][:20], **urls)
    assert "clears a screen" in for_people.stdout
    assert "\x1b" not in for_people.stdout
    large = scoreline("quarantine", "show", by_name["ten-megabytes"], **urls)
    assert len(large.stdout) < 10_000
    assert "bytes)" in large.stderr


async def test_bad_wake_ups_are_quarantined_and_others_are_processed(here: Site) -> None:
    """A wake-up without a valid name is quarantined; those around it are processed."""
    stream = wake_key(shard_of("good", DEFAULT_SHARDS))
    bad: list[dict[Any, Any]] = [
        {"di": "good"},
        {"id": b"\xff\xfe"},
        {"id": ""},
        {"id": "x" * 10_000},
        {"id": "a\nb"},
    ]
    for fields in bad:
        await here.redis.xadd(stream, fields)
    await here.add_plainly(history(LIFE, evaluation_id="good"))
    async with worker(here):
        await until(lambda: completed(here, "good"))
        await until(lambda: nothing_pending(here))
    assert await here.reasons(None) == ["bad_wake_up"] * len(bad)


@pytest.mark.parametrize(
    "key", ["a b", "ünïcode", "👩‍👩‍👧", "no\u00a0break", "x" * 200, "a:events:b", "{00}", "%s"]
)
async def test_a_wake_up_accepts_every_id_that_an_event_may_have(here: Site, key: str) -> None:
    """Any id that the envelope accepts is valid in a wake-up, too."""
    await here.append(history(LIFE, evaluation_id=key))
    async with worker(here):
        await until(lambda: completed(here, key), 3)


async def test_nul_characters_are_replaced(here: Site) -> None:
    """A NUL, which Postgres can't hold, is replaced, and the event is stored."""
    await here.add_plainly(history("queued provisioning", evaluation_id="nul"))
    await here.add_fields("nul", running_in("nul", r'"a\u0000b"'))
    async with worker(here):
        await until(lambda: reached(here, "nul", 2))
    [(process,)] = await here.rows("SELECT event->'data'->>'process' FROM events WHERE sequence = 2")
    assert process == "a\N{REPLACEMENT CHARACTER}b"
    assert await here.reasons("nul") == []


async def reached(here: Site, evaluation_id: str, sequence: int) -> bool:
    return (await here.verdicts(evaluation_id)).get(sequence) == "applied"


@pytest.mark.parametrize("spoilt", [{"exit_code": 10**25}, {"exit_code": -(2**63) - 1}, {"score": 1e300}])
async def test_number_too_large_for_its_column_stops_only_itself(here: Site, spoilt: Fields) -> None:
    """A value that the column can't hold is quarantined; other events of its transaction are stored."""
    *begun, done = history(LIFE, evaluation_id="bad")
    body = json.loads(encode(done))
    body["data"] |= spoilt
    await here.add_plainly(begun)
    await here.add_fields("bad", {**fields_of(done, b""), "event": json.dumps(body)})
    await here.add_plainly(history(LIFE, evaluation_id="neighbour"))
    async with worker(here):
        await until(lambda: completed(here, "neighbour"), 3)
        await until(lambda: here.reasons("bad"), 3)
        await until(lambda: nothing_pending(here), 3)


async def test_key_that_is_no_stream_stops_only_itself(here: Site) -> None:
    """A string at a stream's key does not keep other streams from being read."""
    shard = shard_of("string", DEFAULT_SHARDS)
    neighbour = next(f"good-{n}" for n in range(99) if shard_of(f"good-{n}", DEFAULT_SHARDS) == shard)
    await here.redis.set(events_key(shard, "string"), "not a stream")
    await here.redis.xadd(wake_key(shard), {"id": "string"})
    await here.add_plainly(history(LIFE, evaluation_id=neighbour))
    async with worker(here):
        try:
            await until(lambda: completed(here, neighbour), 3)
        finally:
            await here.redis.delete(events_key(shard, "string"))


async def test_events_of_an_unknown_batch_make_an_external_one(here: Site) -> None:
    """A foreign writer need not register a batch: it appears with its first event."""
    async with worker(here):
        await here.add_plainly(history(LIFE, evaluation_id="free", batch_id="not submitted"))
        await until(lambda: completed(here, "free"))
    assert await here.rows("SELECT batch_id, kind FROM batches") == [("not submitted", "external")]
