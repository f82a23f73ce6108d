"""Decoding entries: which ones are rejected, for which reason, and that the decoder never raises."""

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from eventlog import payloads as p
from eventlog.codec import (
    MAX_EVENT_BYTES,
    Entry,
    QuarantineReason,
    RejectedEntry,
    build,
    decode_body,
    encode,
    read_entry,
)
from eventlog.events import EVENT_CLASSES, SCHEMA_VERSION
from tests.builders import EVALUATION, PAYLOADS, event, history, raw_entry, wire


def envelope(**changes: Any) -> dict[str, Any]:
    """Return the JSON object of a valid `queued` event, with changes."""
    good: dict[str, Any] = json.loads(encode(event("queued")))
    return {**good, **changes}


def read(body: bytes | dict[str, Any]) -> Entry | RejectedEntry:
    """Decode a body from an entry whose other fields belong to a valid `queued` event."""
    as_bytes = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_entry(EVALUATION, raw_entry(event("queued"), event=as_bytes))


def refusal(body: bytes | dict[str, Any]) -> RejectedEntry:
    found = read(body)
    assert isinstance(found, RejectedEntry)
    return found


def as_event(body: bytes) -> Any:
    found = read(body)
    assert isinstance(found, Entry), found
    return found.event


def with_input(text: str) -> bytes:
    """Return a body whose case has this JSON text for its input."""
    return json.dumps(envelope()).replace('"2 + 2"', text).encode()


# Rejected entries.

GARBAGE = {
    "nothing": b"",
    "no JSON": b"hello",
    "half of it": json.dumps(envelope()).encode()[:-1],
    "not UTF-8": with_input('"x"').replace(b'"x"', b'"\xff\xfe"'),
    "half a surrogate pair": with_input(r'"\ud800"'),
    "a list": b"[1, 2]",
    "a number": b"7",
    "null": b"null",
    "a nesting bomb": b"[" * 500_000,
    "a nesting bomb inside": with_input("[" * 5_000 + "]" * 5_000),
    "NaN in free JSON": with_input("NaN"),
    "infinity in free JSON": with_input('{"x": -Infinity}'),
    "a number too large for any type": with_input("9" * 5_000),
}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_rejected_with_its_bytes_intact(body):
    """A body that is not a JSON object is quarantined byte for byte."""
    refused = refusal(body)
    assert refused.reason is QuarantineReason.GARBAGE
    assert (refused.id, refused.body) == (b"1-0", body)
    assert refused.detail


INVALID: dict[str, dict[str, Any]] = {
    "attempt 0": {"attempt": 0},
    "an absurd attempt": {"attempt": 10**7},
    "sequence -1": {"sequence": -1},
    "an extra field": {"colour": "red"},
    "no payload": {"data": None},
    "an extra field in the payload": {"data": {"case": {"id": "x"}, "colour": "red"}},
    "a time without a zone": {"occurred_at": "2026-01-01T00:00:00"},
    "no time": {"occurred_at": "yesterday"},
    "an empty id": {"evaluation_id": ""},
    "a control character in an id": {"batch_id": "batch\n1"},
    "an endless id": {"source": "x" * 201},
    "version 0": {"schema_version": 0},
    "no version": {"schema_version": None},
    "a version in quotes": {"schema_version": "2"},
    "a true version": {"schema_version": True},
}


@pytest.mark.parametrize("changes", INVALID.values(), ids=INVALID.keys())
def test_an_envelope_outside_the_schema_is_invalid(changes):
    """Every field is checked, and the rejection names the first invalid one."""
    refused = refusal(envelope(**changes))
    assert refused.reason is QuarantineReason.INVALID
    (field, *_) = changes
    assert field in refused.detail or field == "schema_version"


def test_numbers_outside_json_are_rejected():
    """NaN is rejected in a typed field as well."""
    scored = encode(event("scored", sequence=4)).replace(b'"score":1.0', b'"score":NaN')
    assert refusal(scored).reason is QuarantineReason.GARBAGE


@pytest.mark.parametrize("unknown", ["abducted", "", None, 7, [], {}, ["queued"]])
def test_an_unknown_event_type_is_rejected(unknown):
    """An unknown or missing type is rejected and raises nothing."""
    assert refusal(envelope(type=unknown)).reason is QuarantineReason.UNKNOWN_TYPE


@pytest.mark.parametrize("changes", [{}, {"type": "abducted"}, {"data": {"new": 1}}, {"colour": "red"}])
def test_a_future_schema_version_is_rejected_first(changes):
    """An event of a newer version is rejected for its version, before its other fields are checked."""
    refused = refusal(envelope(schema_version=SCHEMA_VERSION + 1, **changes))
    assert refused.reason is QuarantineReason.FUTURE_VERSION


@pytest.mark.parametrize("timestamp", [1e20, -1e20, 1e12, "noon", None, [], float("nan")])
def test_an_old_event_with_an_impossible_time_is_rejected(timestamp):
    """An invalid time in a version 1 event is a rejection and no exception."""
    old = {k: v for k, v in envelope(schema_version=1).items() if k not in {"occurred_at", "source"}}
    assert refusal({**old, "timestamp": timestamp}).reason in {
        QuarantineReason.INVALID,
        QuarantineReason.GARBAGE,
    }


@pytest.mark.parametrize("data", [{}, [], None, "text", {"executor_id": 7}, {"executor_id": "x" * 200}])
def test_an_old_event_that_lacks_what_its_version_had_is_invalid(data):
    """A version 1 event that cannot be upcast is rejected with that reason."""
    old = {k: v for k, v in envelope(schema_version=1).items() if k not in {"occurred_at", "source"}}
    assert (
        refusal({**old, "type": "provisioning", "timestamp": 0, "data": data}).reason
        is QuarantineReason.INVALID
    )


def test_an_oversize_body_is_rejected_unparsed():
    """The size limit is checked before the body is parsed."""
    assert refusal(b"{" * (MAX_EVENT_BYTES + 1)).reason is QuarantineReason.OVERSIZE
    assert refusal(b"{" * MAX_EVENT_BYTES).reason is QuarantineReason.GARBAGE


@pytest.mark.parametrize("field", ["type", "attempt", "sequence"])
@pytest.mark.parametrize("value", [b"2", b"01", b"", b"running", b"\xff"])
def test_fields_that_disagree_with_the_envelope_are_a_mismatch(field, value):
    """The entry's fields, which Lua reads, must equal those of the envelope byte for byte."""
    found = read_entry(EVALUATION, raw_entry(event("queued"), **{field: value}))
    assert isinstance(found, RejectedEntry)
    assert found.reason is QuarantineReason.MISMATCH
    assert found.body == encode(event("queued"))


def test_an_event_in_another_evaluations_stream_is_a_mismatch():
    """An event is rejected in the stream of an evaluation that its envelope does not name."""
    found = read_entry("another-evaluation", raw_entry(event("queued")))
    assert isinstance(found, RejectedEntry)
    assert found.reason is QuarantineReason.MISMATCH
    assert EVALUATION in found.detail


@pytest.mark.parametrize("fields", [[], [b"event"], [b"\xff\xfe", b"x"], [b"attempt", b"1", b"sequence"]])
def test_an_entry_without_an_event_is_garbage(fields):
    """Without a body, the entry's fields are quarantined as JSON."""
    found = read_entry(EVALUATION, (b"1-0", fields))
    assert isinstance(found, RejectedEntry)
    assert found.reason is QuarantineReason.GARBAGE
    assert isinstance(json.loads(found.body), list)


def test_an_invalid_entry_does_not_affect_its_neighbours():
    """The decoder continues after a rejection, in the order of arrival."""
    first, second = wire(history("queued provisioning"))
    bad = raw_entry(event("running", sequence=2), event=b"garbage")
    kinds = [type(read_entry(EVALUATION, raw)) for raw in (first, bad, second)]
    assert kinds == [Entry, RejectedEntry, Entry]


def test_decoding_a_stored_body_that_is_unreadable_raises():
    """`decode_body` is for bodies that were decoded before, so a rejection there is an error."""
    with pytest.raises(ValueError, match="garbage"):
        decode_body(b"hello")


# NUL characters, which Postgres cannot store.


def test_a_nul_in_a_value_is_replaced_on_writing_and_on_reading():
    """A text with a NUL is kept, with the NUL replaced."""
    written = encode(event(p.Responded(output="a\0b"), sequence=3))
    assert b"\\u0000" not in written
    assert json.loads(written)["data"]["output"] == "a�b"
    assert as_event(with_input(r'"a\u0000b"')).data.case.input == "a�b"


def test_a_nul_in_a_key_is_replaced_too():
    """Keys of free JSON are text in Postgres, like values."""
    assert as_event(with_input(r'{"k\u0000": [{"\u0000": 1}]}')).data.case.input == {"k�": [{"�": 1}]}


def test_an_escaped_backslash_before_u0000_is_left_alone():
    r"""The text `\u0000`, spelt `\\u0000` in JSON, is six harmless characters."""
    assert as_event(with_input(r'"\\u0000"')).data.case.input == r"\u0000"
    harmless = event(p.Queued(case=p.Case(id="x", input=r"\u0000 and \\u0000")))
    assert decode_body(encode(harmless)) == harmless


def test_garbage_with_a_nul_in_it_keeps_its_bytes():
    """A body that cannot be parsed cannot be cleaned, so its bytes are quarantined unchanged."""
    assert refusal(rb'{"x": "\u0000').body == rb'{"x": "\u0000'


# Any input.

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=200) | ANY_JSON.map(lambda found: json.dumps(found).encode()))
@settings(deadline=None)
def test_decoding_never_raises(body):
    """For any bytes the decoder returns an entry or a rejection."""
    assert isinstance(read(body), RejectedEntry)


@given(st.data())
@settings(deadline=None)
def test_decoding_a_damaged_envelope_never_raises(data):
    """Any JSON value in any field, of either version, is decoded or rejected."""
    word = data.draw(st.sampled_from(sorted(PAYLOADS)))
    good = json.loads(encode(event(word)))
    damaged = {
        **good,
        **data.draw(st.dictionaries(st.sampled_from([*good, "timestamp"]), ANY_JSON, max_size=3)),
    }
    damaged["schema_version"] = data.draw(st.sampled_from([1, SCHEMA_VERSION]))
    assert isinstance(read(damaged), Entry | RejectedEntry)


def test_building_before_a_fork_leaves_nothing_to_build():
    """Events and payloads are complete, so that no child builds them again."""
    build()
    classes = [
        *EVENT_CLASSES.values(),
        *(cls.__dataclass_fields__["data"].type for cls in EVENT_CLASSES.values()),
    ]
    assert [cls.__name__ for cls in classes if not cls.__pydantic_complete__] == []
