"""The json_schema evaluator."""

import json
import re

import pytest

from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest
from executor.evaluators.json_schema import JSON_SCHEMA
from executor.registry import parse_evaluator

SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "integer"}}},
}


async def judge(output: str, schema=SCHEMA, **options) -> p.Score:
    evaluator = JSON_SCHEMA.make("e", {"schema": schema, **options}, ExecutionEnvironment())
    return await evaluator.score(ScoringRequest(p.Case(id="c"), output, {}))


@pytest.mark.parametrize(
    ("output", "passed", "reason"),
    [
        ('{"name": "x", "tags": [1]}', True, ""),
        ('{"name": "x", "tags": [1, "2"]}', False, r"\$\.tags\[1\]: '2' is not of type 'integer'"),
        ("{}", False, r"\$: 'name' is a required property"),
        ("not json", False, "the output is not JSON"),
        ("NaN", False, "the output is not JSON"),
        ("[" * 100_000, False, "the output is not JSON"),
    ],
)
async def test_an_output_matches_or_the_reason_has_the_path_of_the_error(output, passed, reason):
    """The reason is the first error and its path."""
    score = await judge(output)
    assert score.passed is passed
    assert re.search(reason, score.reason)


async def test_json_is_extracted_from_surrounding_text():
    """Models often write text around their JSON."""
    score = await judge('Sure!\n```json\n{"name": "x"}\n```', extract=r"```json\s([\s\S]+?)```")
    assert score.passed


def test_a_schema_in_a_file_travels_in_the_spec(tmp_path):
    """Executors need no file: it is read where the batch is submitted."""
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    spec = parse_evaluator({"type": "json_schema", "path": "s.json", "extract": "x"}, tmp_path)
    assert spec.options == {"schema": SCHEMA, "extract": "x"}


@pytest.mark.parametrize("content", [None, "{", "[1"])
def test_an_unreadable_schema_is_an_error_with_its_name(tmp_path, content):
    """A missing file and one that is not JSON are both errors of one sentence."""
    if content:
        (tmp_path / "s.json").write_text(content)
    with pytest.raises(ValueError, match=r"the schema .*s\.json' can't be read"):
        parse_evaluator({"type": "json_schema", "path": "s.json"}, tmp_path)


@pytest.mark.parametrize("schema", [{"type": "strin"}, {"required": 3}, 7])
def test_an_invalid_schema_is_refused_at_submission(schema):
    """A mistake in a schema is reported when the batch is submitted."""
    with pytest.raises(ValueError, match="the json_schema evaluator: schema"):
        JSON_SCHEMA.check({"schema": schema})


@pytest.mark.parametrize(
    "schema", [{"$ref": "http://127.0.0.1:9/s.json"}, {"$ref": "#/nowhere"}, {"$ref": "#"}]
)
async def test_a_reference_that_leads_nowhere_is_a_fault(schema):
    """No reference is fetched, and a cycle is not followed for ever."""
    with pytest.raises(Permanent) as caught:
        await judge("{}", schema)
    assert caught.value.kind == "bad_schema"


async def test_a_catastrophic_pattern_in_a_schema_is_ended():
    """Schemas have patterns, too."""
    with pytest.raises(Permanent, match="takes too long"):
        await judge(json.dumps("a" * 60 + "b"), {"pattern": "(a+)+$"})
