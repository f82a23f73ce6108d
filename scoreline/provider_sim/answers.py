"""The simulator's answers: a function of the request and the seed only."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from scoreline.provider_sim.faults import uniform
from scoreline.provider_sim.http_messages import Json
from scoreline.provider_sim.schemas import AnswerQuality, fill
from scoreline.provider_sim.settings import AnswerSettings

_CHARACTERS_A_TOKEN = 4
_FRAMING = 7
"""Tokens of a request in addition to those of its text."""
_ASIDE = frozenset({"stream", "stream_options", "metadata", "user"})
"""Fields that do not change the answer."""
_SENTENCES = (
    "The short answer is yes, with a few conditions worth naming.",
    "Three things matter here, and the first is the order in which they happen.",
    "In practice the difference is small, but it shows under load.",
    "The capital of France is Paris, which has been so for a very long time.",
    "Adding the two numbers gives 42.",
    "One way to see this is to follow a single request from start to finish.",
    "That depends on how the data were collected in the first place.",
    "Most readers will want the simpler of the two, and they are right to.",
    "A function that returns early is easier to follow than one that does not.",
    "The evidence points the same way in all of the cases we looked at.",
    "It follows that the second statement can't be true if the first one is.",
    "Let me know whether a worked example would help.",
)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request, parsed from either API."""

    model: str
    prompt: str
    digest: int
    input_tokens: int
    max_tokens: int
    streamed: bool = False
    usage_wanted: bool = False
    """Whether a stream has to end with its usage, where that is optional."""
    tool: str | None = None
    schema: Mapping[str, Any] | None = None
    """The schema of the answer: the input of the tool, or JSON if there is no tool."""


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """An answer: a text, or the use of a tool."""

    text: str
    output_tokens: int
    tool: str | None = None
    tool_input: Any = None
    is_cut: bool = False


def digest_of(params: Mapping[str, Any]) -> int:
    """Return a digest of the request's content."""
    asked = {name: value for name, value in params.items() if name not in _ASIDE}
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


def tokens_in(*texts: str) -> int:
    """Guess how many tokens there are in texts, as a rule of thumb has it."""
    return max(1, math.ceil(sum(map(len, texts)) / _CHARACTERS_A_TOKEN))


def input_tokens(*texts: str) -> int:
    """Guess what a request weighs."""
    return _FRAMING + tokens_in(*texts)


def answer(request: ModelRequest, wanted: AnswerSettings) -> SimulatedAnswer:
    """Return the answer in the requested form."""
    if request.schema is None:
        return _cut(_as_text(_chosen(request, wanted)), request.max_tokens)
    value = _verdict(request, wanted)
    text = json.dumps(value, ensure_ascii=False)
    if request.tool is None:
        return _cut(text, request.max_tokens)
    return SimulatedAnswer("", tokens_in(text), request.tool, value)


def _verdict(request: ModelRequest, wanted: AnswerSettings) -> Json:
    """Fill in the form, unless the answer to this prompt was given as one."""
    given = wanted.answers.get(request.prompt) if wanted.mode == "map" else None
    if isinstance(given, dict):
        return given
    passed = uniform(wanted.seed, request.digest, "verdict") < wanted.pass_rate
    return fill(request.schema, AnswerQuality(passed, request.digest ^ wanted.seed))


def _chosen(request: ModelRequest, wanted: AnswerSettings) -> object:
    match wanted.mode:
        case "echo":
            return request.prompt
        case "text":
            return wanted.text
        case "map" if request.prompt in wanted.answers or "*" in wanted.answers:
            return wanted.answers.get(request.prompt, wanted.answers.get("*"))
        case "map" | "plausible":
            return _plausible(request.digest ^ wanted.seed, wanted.output_tokens)
        case _:
            raise ValueError(wanted.mode)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plausible(seed: int, tokens: int) -> str:
    """Put sentences together, from half to one and a half times as many tokens as are usual."""
    wanted = tokens * _CHARACTERS_A_TOKEN * (0.5 + uniform(seed, "length"))
    sentences, at, step = list[str](), seed % len(_SENTENCES), 1 + seed % 5 * 2
    length = 0
    while length < wanted:
        sentences.append(_SENTENCES[at])
        length += len(_SENTENCES[at]) + 1
        at = (at + step) % len(_SENTENCES)
    return " ".join(sentences)


def _cut(text: str, max_tokens: int) -> SimulatedAnswer:
    answered = SimulatedAnswer(text, tokens_in(text))
    if answered.output_tokens <= max_tokens:
        return answered
    return replace(
        answered, text=text[: max_tokens * _CHARACTERS_A_TOKEN], output_tokens=max_tokens, is_cut=True
    )
