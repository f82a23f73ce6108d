"""The simulator's answers, and its values for schemas."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoreline.provider_sim.answers import SimulatedAnswer, answer
from scoreline.provider_sim.anthropic_messages import AnthropicMessages
from scoreline.provider_sim.faults import draw_fault, draw_latency, uniform
from scoreline.provider_sim.http_messages import ApiError
from scoreline.provider_sim.openai_chat import OpenAIChat, duration
from scoreline.provider_sim.schemas import AnswerQuality, fill
from scoreline.provider_sim.settings import (
    AnswerSettings,
    FaultSettings,
    InvalidSimulatorSettings,
    LatencySettings,
    SimulatorSettings,
    changed,
    flat,
)

ASK = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "Why?"}]}
bounds = st.integers(-100, 100)
leaf = st.one_of(
    st.just({"type": "boolean"}),
    st.builds(
        lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more},
        bounds,
        st.integers(0, 9),
    ),
    st.builds(lambda low: {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + 1}, bounds),
    st.builds(lambda low: {"type": "integer", "exclusiveMinimum": low}, bounds),
    st.builds(lambda high: {"type": "number", "maximum": high}, bounds),
    st.lists(st.sampled_from(["pass", "fail", "A", "B", 1]), min_size=1, unique=True).map(
        lambda e: {"enum": e}
    ),
    st.builds(
        lambda low, more: {"type": "string", "minLength": low, "maxLength": low + more},
        st.integers(0, 99),
        st.integers(0, 9),
    ),
    st.just({"type": ["string", "null"]}),
    st.just({"anyOf": [{"type": "null"}, {"type": "integer"}]}),
    st.just({"const": 7}),
)
schemas = st.recursive(
    leaf,
    lambda inner: st.one_of(
        st.builds(
            lambda items, n: {"type": "array", "items": items, "minItems": n}, inner, st.integers(0, 3)
        ),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(
            lambda p: {
                "type": "object",
                "properties": p,
                "required": list(p),
                "additionalProperties": False,
            }
        ),
    ),
    max_leaves=6,
)


def answer_to(params: Any = ASK, **wanted: Any) -> SimulatedAnswer:
    return answer(AnthropicMessages().read(params), AnswerSettings(**wanted))


@given(schemas, st.booleans(), st.integers(0, 2**64 - 1))
def test_generated_values_satisfy_the_schema(schema, passed, seed):
    """This covers the common keywords of schemas."""
    jsonschema.validate(fill(schema, AnswerQuality(passed, seed)), schema)


def test_the_fields_of_a_verdict_agree():
    """All fields mean a pass, or all mean a failure."""
    schema = {
        "properties": {
            "passed": {"type": "boolean"},
            "score": {"type": "number", "minimum": 0, "maximum": 10},
            "label": {"enum": ["incorrect", "correct"]},
        }
    }
    for seed in range(50):
        good, bad = fill(schema, AnswerQuality(True, seed)), fill(schema, AnswerQuality(False, seed))
        assert (good["passed"], good["label"], good["score"] > 6) == (True, "correct", True)
        assert (bad["passed"], bad["label"], bad["score"] < 5) == (False, "incorrect", True)


def test_a_schema_may_refer_to_its_definitions_and_to_itself():
    """Schemas generated from classes do so; recursion is bounded."""
    schema = {
        "$ref": "#/$defs/N",
        "$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}, "ok": {"type": "boolean"}}}},
    }
    assert fill(schema, AnswerQuality(True, 1))["n"]["ok"] is True


def test_the_same_request_is_answered_the_same_and_streaming_makes_no_difference():
    """The answer depends on the request and the seed, not on the transport."""
    assert answer_to() == answer_to({**ASK, "stream": True, "metadata": {"user_id": "x"}})
    assert answer_to() != answer_to(seed=1)
    assert answer_to() != answer_to({**ASK, "messages": [{"role": "user", "content": "Why not?"}]})


def test_modes():
    """The answer is an echo, a fixed text, or the entry of a map for the prompt."""
    assert answer_to(mode="echo").text == "Why?"
    assert answer_to(mode="text", text="Because.").text == "Because."
    assert answer_to(mode="map", answers={"Why?": "42"}).text == "42"
    assert answer_to(mode="map", answers={"*": "else"}).text == "else"
    assert answer_to(mode="map", answers={}).text == answer_to().text


def test_an_answer_longer_than_allowed_is_truncated():
    """Its stop reason is the token limit."""
    short = answer_to({**ASK, "max_tokens": 2})
    assert (short.is_cut, short.output_tokens, len(short.text)) == (True, 2, 8)


def test_verdicts_pass_at_the_configured_rate():
    """The share is measured over many requests."""
    tool = {"name": "judge", "input_schema": {"properties": {"ok": {"type": "boolean"}}}}
    form = {"tools": [tool], "tool_choice": {"type": "tool", "name": "judge"}}
    requests = ({**ASK, **form, "messages": [{"role": "user", "content": str(i)}]} for i in range(1_000))
    passed = sum(answer_to(each, pass_rate=0.3).tool_input["ok"] for each in requests)
    assert 250 < passed < 350


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": None}, "model: Field required"),
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"messages": None}, "messages: Field required"),
        ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
        ({"max_tokens": "7"}, "max_tokens: Input should be a valid integer"),
        ({"messages": []}, "messages: at least one message is required"),
        ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
        (
            {"messages": [{"role": "user", "content": ["x"]}]},
            "messages.0.content: Input should be a list of content blocks",
        ),
        ({"temperature": 2}, "temperature: range: 0..1"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, "Tool 'x' not found in provided tools"),
    ],
)
def test_requests_that_make_no_sense_are_refused(change, message):
    """The error has the API's format."""
    with pytest.raises(ApiError) as caught:
        AnthropicMessages().read({**ASK, **change})
    assert (caught.value.status, caught.value.message) == (400, message)


@pytest.mark.parametrize(
    "change", [{"model": ""}, {"messages": []}, {"messages": [{"role": "x"}]}, {"max_tokens": 0}]
)
def test_chats_that_make_no_sense_are_refused(change):
    """The status is 400, too."""
    with pytest.raises(ApiError):
        OpenAIChat().read({**ASK, **change})


@pytest.mark.parametrize(
    ("seconds", "written"), [(0.02, "20ms"), (1.5, "1.5s"), (360, "6m0s"), (3_600, "1h0m0s"), (0, "0ms")]
)
def test_durations_are_written_as_openai_writes_them(seconds, written):
    """Short durations are in milliseconds."""
    assert duration(seconds) == written


def test_faults_come_in_the_configured_shares():
    """Each kind occurs only where it can happen."""
    faults = FaultSettings(overloaded=0.1, reset_midway=0.1, html=0.1, stream_error=0.2)
    drawn = [draw_fault(faults, streamed=False, fortune=uniform(i)) for i in range(3_000)]
    assert 230 < drawn.count("html") < 370
    assert "stream_error" not in drawn
    assert 2_000 < drawn.count(None) < 2_200
    streamed = [draw_fault(faults, streamed=True, fortune=uniform(i)) for i in range(3_000)]
    assert "html" not in streamed
    assert 520 < streamed.count("stream_error") < 680


def test_latency_has_the_configured_median_and_p95():
    """It is lognormal between them; a single number is constant."""
    drawn = sorted(draw_latency(LatencySettings(1.0, 4.0), uniform(i)) for i in range(4_000))
    assert drawn[2_000] == pytest.approx(1.0, rel=0.1)
    assert drawn[3_800] == pytest.approx(4.0, rel=0.15)
    assert {draw_latency(LatencySettings(0.5), uniform(i)) for i in range(9)} == {0.5}


def test_settings_change_by_name_all_or_none():
    """An unknown name or a value out of range changes nothing; keys are not shown."""
    settings = changed(SimulatorSettings(), {"rpm": 5, "mode": "echo", "keys": ["secret-1"]})
    assert (settings.limits.rpm, settings.answers.mode) == (5, "echo")
    assert flat(settings)["keys"] == 1
    assert "secret-1" not in repr(settings)
    for wrong in ({"rmp": 1}, {"overloaded": 2}, {"mode": "shout"}, {"rpm": -1}, {"keys": ["secret-2", 3]}):
        with pytest.raises(InvalidSimulatorSettings) as caught:
            changed(settings, wrong)
        assert "secret" not in str(caught.value)
