"""What people type to name a target or an evaluator, taken apart.

    simulated                       a type, without options
    recorded:answers.jsonl          a type and its one telling option
    https://example.org/answer      an address
    openai/gpt-5                    a provider and its model
    {type: http, url: …, label: …}  a type, its options, and how to call it

Nothing is checked here: the registry knows the types, and `check` of a type knows its options.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import JsonValue

from domain.batch_spec import Options
from providers.table import PROVIDERS, split_model

TELLING_OPTION = {
    ("recorded", ":"): "path",
    ("python", ":"): "function",
    ("command", ":"): "command",
    ("container", ":"): "image",
}
"""By type and the sign behind it: the option that takes the rest of a short form."""

TELLING_OPTION_OF_EVALUATORS = {"python": "function", "contains": "value", "regex": "pattern"}

MAX_LABEL = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Parts:
    """What was written: a type, its options, and what else was said of it."""

    type: str
    options: Options = field(default_factory=dict)
    said: Options = field(default_factory=dict)
    rest: str = ""
    """What follows the type in a short form that has no place for it."""


def split_target(text: str) -> Parts:
    """Take a short form apart."""
    text = text.strip()
    if text.lower().startswith(("http://", "https://")):
        return Parts("http", {"url": text})
    if named := split_model(text):
        return Parts(named[0], {"model": named[1]})
    for (name, sign), option in TELLING_OPTION.items():
        if text.startswith(name + sign) and len(text) > len(name + sign):
            return Parts(name, {option: text[len(name + sign) :]})
    name, *rest = re.split(r"[:/]", text, maxsplit=1)
    return Parts(name, rest="".join(rest))


def split_evaluator(text: str) -> Parts:
    """Take an evaluator's short form apart: `exact`, `contains:Paris`, `python:judges:is_polite`."""
    name, sign, rest = text.strip().partition(":")
    option = TELLING_OPTION_OF_EVALUATORS.get(name)
    if sign and option and rest:
        return Parts(name, {option: rest})
    return Parts(name, rest=rest)


def split_mapping(mapping: Mapping[str, JsonValue], *, apart: frozenset[str]) -> Parts:
    """Take a mapping apart: the type, what is `apart` from the options, and the options."""
    name = mapping.get("type")
    if not isinstance(name, str):
        raise ValueError("write a name, or a mapping with a type: {type: …}")  # noqa: TRY004 - for the user
    options = {key: value for key, value in mapping.items() if key not in {"type", *apart}}
    return Parts(name, options, {key: mapping[key] for key in apart if mapping.get(key) is not None})


def label_of(parts: Parts) -> str:
    """Say how people call a target: as its short form, without what may be a key or a password."""
    return _printable(str(parts.said.get("label") or _short_form(parts)))


def _short_form(parts: Parts) -> str:
    if isinstance(url := parts.options.get("url"), str):
        split = urlsplit(url)
        return f"{split.scheme}://{split.netloc.rpartition('@')[2]}{split.path}"
    if isinstance(model := parts.options.get("model"), str) and parts.type in PROVIDERS:
        return f"{parts.type}/{model}"
    for (name, sign), option in TELLING_OPTION.items():
        if name == parts.type and (value := parts.options.get(option)):
            return f"{name}{sign}{' '.join(map(str, value)) if isinstance(value, list) else value}"
    return parts.type


def _printable(text: str) -> str:
    text = _CONTROL.sub(" ", text).strip()
    return text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"
