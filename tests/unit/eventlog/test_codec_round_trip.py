"""Encoding and decoding are inverse for every event type; an oversize event is not encoded."""

from dataclasses import FrozenInstanceError
from datetime import timedelta, timezone
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from eventlog import payloads as p
from eventlog.codec import MAX_EVENT_BYTES, Entry, OversizeEvent, encode, make_event, read_entry
from eventlog.events import EVENT_CLASSES, SCHEMA_VERSION, is_in_range, type_of
from tests.builders import BATCH, CASE, EVALUATION, PAYLOADS, START, event, raw_entry


def test_an_event_over_the_size_limit_is_not_encoded():
    """The encoder raises at once, with the size."""
    part = p.Score(evaluator="judge", score=0, reason="x" * (p.MAX_TEXT - 1))
    with pytest.raises(OversizeEvent) as oversize:
        encode(event(p.Completed(verdict="passed", scores=(part, part, part)), sequence=3))
    assert oversize.value.size > MAX_EVENT_BYTES


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(timezones=ZONES).filter(is_in_range)
"""Times that an event can carry."""
AMOUNTS = st.floats(0, 1e12)
SCORES = st.floats(-1e12, 1e12)
USAGES = st.builds(p.TokenUsage, input_tokens=st.integers(0, 10**12), output_tokens=st.integers(0, 10**12))
CASES = st.builds(
    p.Case, id=NAMES, input=JSON, expected=JSON, metadata=st.dictionaries(TEXT, JSON, max_size=2)
)
FAULTS = st.builds(p.ErrorDetail, kind=NAMES, message=TEXT)
ANSWER = {
    "output": TEXT,
    "usage": USAGES,
    "cost_usd": AMOUNTS,
    "latency_ms": AMOUNTS,
    "cached": st.booleans(),
}
SCORE = {
    "evaluator": NAMES,
    "score": SCORES,
    "passed": st.none() | st.booleans(),
    "reason": TEXT,
    "usage": USAGES,
    "cost_usd": AMOUNTS,
}
ALL_SCORES = st.lists(st.builds(p.Score, **SCORE), max_size=2).map(tuple)
PAYLOAD_STRATEGIES: list[st.SearchStrategy[p.AnyPayload]] = [
    st.builds(
        p.Queued,
        case=CASES,
        reason=st.sampled_from(p.OpeningReason),
        answer=st.none() | st.builds(p.Answer, **ANSWER),
        scores=ALL_SCORES,
        epoch=TEXT,
    ),
    st.builds(p.Cancelled, by=NAMES, reason=TEXT),
    st.builds(p.Provisioning, executor=NAMES, nonce=NAMES, runtime=NAMES),
    st.builds(p.Running, target=NAMES, process=TEXT),
    st.builds(p.Responded, **ANSWER),
    st.builds(p.Scored, **SCORE),
    st.builds(
        p.Completed,
        verdict=st.sampled_from(["passed", "failed"]),
        score=st.none() | SCORES,
        scores=ALL_SCORES,
        usage=USAGES,
        cost_usd=AMOUNTS,
        latency_ms=AMOUNTS,
        output=st.none() | TEXT,
        exit_code=st.none() | st.integers(-255, 255),
    ),
    st.builds(p.Retrying, error=FAULTS, retry_at=MOMENTS),
    st.builds(p.Failed, error=FAULTS),
    st.builds(p.TimedOut, limit=NAMES, seconds=AMOUNTS, error=st.none() | FAULTS),
]


@pytest.mark.parametrize("payloads", PAYLOAD_STRATEGIES, ids=EVENT_CLASSES.keys())
@given(data=st.data())
@settings(deadline=None)
def test_decoding_returns_the_encoded_event(payloads, data):
    """Any event is unchanged by encoding and decoding, and its entry's fields agree with its envelope."""
    written = make_event(
        data.draw(payloads),
        evaluation_id=data.draw(NAMES),
        batch_id=data.draw(NAMES),
        attempt=data.draw(st.integers(1, 10**6)),
        sequence=data.draw(st.integers(0, 10**6)),
        occurred_at=data.draw(MOMENTS),
        source=data.draw(NAMES),
        traceparent=data.draw(st.none() | TEXT),
    )
    entry = read_entry(written.evaluation_id, raw_entry(written))
    assert isinstance(entry, Entry), entry
    assert entry.event == written
    assert entry.body == encode(written) == encode(entry.event)
    assert entry.key == written.key


def test_every_event_type_is_round_tripped():
    """The strategies above cover every event type."""
    assert len(PAYLOAD_STRATEGIES) == len(EVENT_CLASSES) == len(PAYLOADS)
    assert [type_of(payload) for payload in PAYLOADS.values()] == list(EVENT_CLASSES)


def test_events_are_immutable():
    """Events and their payloads are frozen."""
    models: list[Any] = [event("queued"), CASE]
    for model in models:
        with pytest.raises(FrozenInstanceError):
            setattr(model, next(iter(type(model).__dataclass_fields__)), "other")


def test_make_event_sets_the_current_version_and_the_type_of_its_payload():
    """`make_event` fills in the envelope."""
    made = make_event(
        PAYLOADS["running"],
        evaluation_id=EVALUATION,
        batch_id=BATCH,
        attempt=1,
        sequence=2,
        occurred_at=START,
        source="test",
    )
    assert (made.type, made.schema_version, made.key) == ("running", SCHEMA_VERSION, (1, 2))
