"""Short forms of targets and evaluators, parsed.

    simulated                       a type, without options
    recorded:answers.jsonl          a type and its main option
    https://example.org/answer      an address
    openai/gpt-5                    a provider and its model
    {type: http, url: …, label: …}  a type, its options and its label

Nothing is validated here: the registry knows the types, and `check` of a type its options.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import JsonValue

from domain.batch_spec import Options
from providers.table import PROVIDERS, split_model

MAIN_OPTION = {
    ("recorded", ":"): "path",
    ("python", ":"): "function",
    ("command", ":"): "command",
    ("container", ":"): "image",
}
"""By type and separator: the option that takes the remainder of a short form."""

MAIN_OPTION_OF_EVALUATORS = {"python": "function", "contains": "value", "regex": "pattern"}

MAX_LABEL = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class ParsedReference:
    """A type, its options, and the settings beside them."""

    type: str
    options: Options = field(default_factory=dict)
    settings: Options = field(default_factory=dict)
    remainder: str = ""
    """Text behind the type of a short form that has no main option."""


def split_target(text: str) -> ParsedReference:
    """Parse the short form of a target."""
    text = text.strip()
    if text.lower().startswith(("http://", "https://")):
        return ParsedReference("http", {"url": text})
    if named := split_model(text):
        return ParsedReference(named[0], {"model": named[1]})
    for (name, sign), option in MAIN_OPTION.items():
        if text.startswith(name + sign) and len(text) > len(name + sign):
            return ParsedReference(name, {option: text[len(name + sign) :]})
    name, *rest = re.split(r"[:/]", text, maxsplit=1)
    return ParsedReference(name, remainder="".join(rest))


def split_evaluator(text: str) -> ParsedReference:
    """Parse the short form of an evaluator: `exact`, `contains:Paris`, `python:judges:is_polite`."""
    name, sign, rest = text.strip().partition(":")
    option = MAIN_OPTION_OF_EVALUATORS.get(name)
    if sign and option and rest:
        return ParsedReference(name, {option: rest})
    return ParsedReference(name, remainder=rest)


def split_mapping(mapping: Mapping[str, JsonValue], *, beside: frozenset[str]) -> ParsedReference:
    """Parse a mapping: the type, the settings `beside` the options, and the options."""
    name = mapping.get("type")
    if not isinstance(name, str):
        raise ValueError("write a name, or a mapping with a type: {type: …}")  # noqa: TRY004 - for the user
    options = {key: value for key, value in mapping.items() if key not in {"type", *beside}}
    return ParsedReference(
        name, options, {key: mapping[key] for key in beside if mapping.get(key) is not None}
    )


def label_of(parts: ParsedReference) -> str:
    """Return the label of a target: its short form, without anything that may be a key or a password."""
    return _printable(str(parts.settings.get("label") or _short_form(parts)))


def _short_form(parts: ParsedReference) -> str:
    if isinstance(url := parts.options.get("url"), str):
        split = urlsplit(url)
        return f"{split.scheme}://{split.netloc.rpartition('@')[2]}{split.path}"
    if isinstance(model := parts.options.get("model"), str) and parts.type in PROVIDERS:
        return f"{parts.type}/{model}"
    for (name, sign), option in MAIN_OPTION.items():
        if name == parts.type and (value := parts.options.get(option)):
            return f"{name}{sign}{' '.join(map(str, value)) if isinstance(value, list) else value}"
    return parts.type


def _printable(text: str) -> str:
    text = _CONTROL.sub(" ", text).strip()
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"
