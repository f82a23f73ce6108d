"""Texts under fuzzing: templates, patterns, schemas, redaction."""

import asyncio
import json
from typing import Any

from domain.template import UnknownField, placeholders, render
from eventlog.redaction import Redactor
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest
from executor.evaluators.extract import compile_pattern, find_last
from executor.evaluators.json_schema import JSON_SCHEMA
from executor.evaluators.numeric import number_in
from tests.builders import CASE
from tests.fuzz import inputs
from tests.fuzz.target import FuzzTarget

PATTERNS = (
    b"(a+)+$\n" + b"a" * 40 + b"!",
    rb"A:\s*(.+)$" + b"\nA: 4\nA: 5",
    rb"(\d+)\.(\d*)" + b"\n1.5",
    rb"(?i)(?P<x>\w)(?P=x)|^$" + b"\nbook",
)
SCHEMA = (
    b'{"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "number"}}}'
)


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
            JSON_SCHEMA.make("json_schema", options, ExecutionEnvironment()).score(
                ScoringRequest(CASE, output, {})
            )
        )
    except Permanent:
        return


def _redaction(body: bytes) -> None:
    redactor = Redactor(frozenset({"s3cr3t-canary/+", "pass word"}))
    assert isinstance(redactor.redact(body.decode(errors="replace")), str)


TEXT_TARGETS = (
    FuzzTarget("template", inputs.texts(b'{a.b.0} {{x}} {c}\n{"a": {"b": [1]}, "c": null}'), _template),
    FuzzTarget("regex", inputs.texts(*PATTERNS), _regex, seconds=7.0),
    FuzzTarget("evaluators", inputs.texts(SCHEMA + b'\n{"a": 1}', b"true\n1,234.50 %"), _evaluators),
    FuzzTarget(
        "redaction", inputs.texts(b"key=s3cr3t-canary/+ pass%20word czNjcjN0LWNhbmFyeS8r"), _redaction
    ),
)
