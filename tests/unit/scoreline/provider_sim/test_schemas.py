"""Values that the simulator makes for JSON schemas."""

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from scoreline.provider_sim.schemas import AnswerQuality, fill

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
