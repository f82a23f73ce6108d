"""A fast decoder accepts a subset of what the codec accepts, and yields the same values."""

import json
from dataclasses import fields, is_dataclass
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given
from pydantic import TypeAdapter, ValidationError

from eventlog import payloads as p
from eventlog.codec import Entry, decode, encode, make_event
from eventlog.events import type_of
from eventlog.fast_decoder import AS_WRITTEN, FAST_TYPES, REFUSED, FastDecoder
from tests.builders import BATCH, EVALUATION, START, event
from tests.unit.eventlog.test_codec_round_trip import JSON, NAMES, PAYLOAD_STRATEGIES

PAYLOADS = st.one_of(PAYLOAD_STRATEGIES).filter(lambda payload: type_of(payload) in FAST_TYPES)
DECODERS = {name: FastDecoder([name]) for name in FAST_TYPES}


def accepted(event_type: str, body: bytes) -> Any:
    """Decode one body; None where the codec has to."""
    try:
        [found] = DECODERS[event_type].decode(b"[" + body + b"]")
    except REFUSED:
        return None
    return found


def same(fast: Any, exact: Any) -> bool:
    """Whether a structure has the values of a model; those that stay as written are compared elsewhere."""
    if not is_dataclass(exact):
        return bool(fast == exact or (isinstance(fast, tuple) and all(map(same, fast, exact))))
    return all(
        (type(exact), part.name) in AS_WRITTEN or same(getattr(fast, part.name), getattr(exact, part.name))
        for part in fields(exact)
        if hasattr(fast, part.name)
    )


def body_of(payload: Any, source: str = "test") -> bytes:
    envelope: dict[str, Any] = {"evaluation_id": EVALUATION, "batch_id": BATCH, "attempt": 1, "sequence": 0}
    return encode(make_event(payload, **envelope, occurred_at=START, source=source))


@given(PAYLOADS, NAMES)
def test_what_the_codec_wrote_is_decoded_to_the_same_values(payload: Any, source: str) -> None:
    """Whatever texts, numbers and nested values it carries."""
    check(type_of(payload), body_of(payload, source))


ODD = JSON | st.sampled_from(
    [
        10**30,
        1e300,
        -1,
        0,
        True,
        "",
        "\x7f",
        "a\nb",
        "\x00",
        "x" * 201,
        [[[[[[[[]]]]]]]],
        "2026-01-01",
        {"a": 1},
    ]
)


@given(PAYLOADS, ODD, st.data())
def test_a_body_that_the_codec_refuses_is_never_accepted(payload: Any, value: Any, data: Any) -> None:
    """A field is removed, added, repeated, or gets another value, anywhere in the body."""
    document = json.loads(body_of(payload))
    place = data.draw(st.sampled_from(_objects(document)))
    name = data.draw(st.sampled_from([*place, "unknown"]))
    if data.draw(st.booleans()):
        place[name] = value
    else:
        place.pop(name, None)
    body = json.dumps(document, ensure_ascii=data.draw(st.booleans())).encode(errors="surrogatepass")
    check(type_of(payload), body)


@given(PAYLOADS, ODD, st.data())
def test_of_a_repeated_field_the_last_is_taken(payload: Any, value: Any, data: Any) -> None:
    """By both, or the codec decides alone."""
    body = body_of(payload).decode()
    name = data.draw(st.sampled_from(["type", "sequence", "occurred_at", "data", "batch_id"]))
    repeated = f'{{"{name}":{json.dumps(value)},{body[1:]}'
    check(type_of(payload), repeated.encode())
    check(type_of(payload), f'{body[:-1]},"{name}":{json.dumps(value)}}}'.encode())


def check(event_type: str, body: bytes) -> None:
    found = accepted(event_type, body)
    if found is None or found.occurred_at != WRITTEN or not scores_are_valid(found):
        return  # a reader leaves it to the codec
    exact = decode(b"1-1", body)
    assert isinstance(exact, Entry)
    assert same(found, exact.event)


WRITTEN = START.isoformat().replace("+00:00", "Z")
SCORES = TypeAdapter(tuple[p.Score, ...])


def scores_are_valid(found: Any) -> bool:
    """Check the scores that stay as written, as a reader does."""
    written = getattr(found.data, "scores", ())
    try:
        return not isinstance(written, msgspec.Raw) or SCORES.validate_json(bytes(written)) is not None
    except ValidationError:
        return False


def _objects(document: Any) -> list[dict[str, Any]]:
    """Return all JSON objects of a document that have a field."""
    inner = (
        document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
    )
    found = [each for part in inner for each in _objects(part)]
    return [document, *found] if isinstance(document, dict) and document else found


@pytest.mark.parametrize("escape", [r"\ud800", r"\u0000", r"\u000a", "\x7f"])
def test_a_control_character_in_a_name_is_left_to_the_codec(escape: str) -> None:
    """The pattern of names is checked wherever a control character can be."""
    body = encode(event("provisioning", sequence=1)).replace(b"executor-1", f"executor{escape}".encode())
    assert accepted("provisioning", body) is None


@pytest.mark.parametrize("name", FAST_TYPES)
def test_an_ordinary_event_is_accepted(name: str) -> None:
    """Otherwise nothing would be faster."""
    found = accepted(name, encode(event(name)))
    assert found.evaluation_id == EVALUATION


def test_a_completed_that_omits_its_cost_is_left_to_the_codec() -> None:
    """Earlier events of its attempt supply the cost."""
    body = json.loads(encode(event("completed", sequence=3)))
    assert isinstance(accepted("completed", json.dumps(body).encode()), msgspec.Struct)
    del body["data"]["cost_usd"]
    assert accepted("completed", json.dumps(body).encode()) is None
