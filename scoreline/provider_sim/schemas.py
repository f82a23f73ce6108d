"""A value that satisfies a JSON schema, well or badly: how the simulator fills in a verdict."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scoreline.provider_sim.faults import uniform
from scoreline.provider_sim.http_messages import Json

Schema = Mapping[str, Any]

_GOOD = {"pass", "passed", "yes", "true", "correct", "good", "right", "accept", "win", "a", "c"}
_DEEPEST = 12
"""A schema that refers to itself ends here."""


@dataclass(frozen=True, slots=True)
class AnswerQuality:
    """Whether the answer is a good one, and the seed of all other choices."""

    passed: bool
    seed: int


def fill(schema: object, verdict: AnswerQuality) -> Json:
    """Create a value of the schema: high numbers, true and positive words for a pass, else the opposite."""
    root = schema if isinstance(schema, Mapping) else {}
    return _value(root, root, verdict, "$")


def _value(schema: Schema, root: Schema, verdict: AnswerQuality, path: str) -> Json:
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return _choice(list(schema["enum"]), verdict, path)
    if path.count(".") > _DEEPEST:
        return None
    match _type(schema):
        case "object":
            wanted = schema.get("properties", {})
            return {name: _value(each, root, verdict, f"{path}.{name}") for name, each in wanted.items()}
        case "array":
            number = max(1, int(schema.get("minItems", 1))) if schema.get("maxItems", 1) else 0
            return [_value(schema.get("items", {}), root, verdict, f"{path}.{i}") for i in range(number)]
        case "boolean":
            return verdict.passed
        case "integer" | "number" as kind:
            return _number(schema, verdict, path, whole=kind == "integer")
        case "null":
            return None
        case _:
            return _text(schema, verdict)


def _resolved(schema: Schema, root: Schema) -> Schema:
    """Follow references within the schema, and take the first of several that is not null."""
    for _ in range(_DEEPEST):
        if "$ref" in schema:
            found: Any = root
            for step in str(schema["$ref"]).removeprefix("#").strip("/").split("/"):
                found = found.get(step, {}) if isinstance(found, Mapping) else {}
            schema = found
        elif several := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            schema = next((each for each in several if each.get("type") != "null"), several[0])
        else:
            break
    return schema


def _type(schema: Schema) -> str:
    named = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(named, list):
        named = next((each for each in named if each != "null"), "null")
    return str(named)


def _choice(values: list[Any], verdict: AnswerQuality, path: str) -> Json:
    """Choose a positive word for a pass and another for a fail; by default the first is positive."""
    good = [value for value in values if str(value).lower() in _GOOD] or values[:1]
    pool = good if verdict.passed else [value for value in values if value not in good] or values
    return pool[int(uniform(verdict.seed, path) * len(pool))]


def _number(schema: Schema, verdict: AnswerQuality, path: str, *, whole: bool) -> float | int:
    """Choose from the upper part of the range for a pass, from the lower for a fail."""
    low, high = _range(schema, step=1 if whole else 0)
    base, width = (0.7, 0.29) if verdict.passed else (0.01, 0.39)
    value = low + (high - low) * (base + width * uniform(verdict.seed, path))
    if whole:
        return int(min(max(round(value), low), high))
    return round(value, 3) if low < round(value, 3) < high else value


def _range(schema: Schema, *, step: int) -> tuple[float, float]:
    """Return the bounds of a number; integers exclude exclusive bounds."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        low = schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else None
    if high is None:
        high = schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else None
    least = float(low) if low is not None else min(0.0, float(high or 0) - 1)
    return least, float(high) if high is not None else max(1.0, least + 1)


def _text(schema: Schema, verdict: AnswerQuality) -> str:
    text = "The answer meets the criteria." if verdict.passed else "The answer does not meet the criteria."
    return text.ljust(int(schema.get("minLength", 0)), ".")[: int(schema.get("maxLength", 1_000_000))]
