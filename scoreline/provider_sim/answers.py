"""What the simulator says: a function of the request and the seed, and of nothing else."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from scoreline.provider_sim.faults import luck
from scoreline.provider_sim.http_messages import Json
from scoreline.provider_sim.schemas import AnswerQuality, fill
from scoreline.provider_sim.settings import AnswerSettings

_CHARACTERS_A_TOKEN = 4
_FRAMING = 7
"""Tokens that a request costs besides its words."""
_ASIDE = frozenset({"stream", "stream_options", "metadata", "user"})
"""What does not change the answer."""
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
    """What is asked, in whichever dialect."""

    model: str
    prompt: str
    digest: int
    input_tokens: int
    max_tokens: int
    streamed: bool = False
    usage_wanted: bool = False
    """Whether a stream has to end with what it cost, where that is not said anyway."""
    tool: str | None = None
    schema: Mapping[str, Any] | None = None
    """What the answer has to look like: the input of the tool, or JSON where there is no tool."""


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """An answer: a text, or the use of a tool."""

    text: str
    output_tokens: int
    tool: str | None = None
    tool_input: Any = None
    is_cut: bool = False


def digest_of(params: Mapping[str, Any]) -> int:
    """Tell requests apart by what they ask."""
    asked = {name: value for name, value in params.items() if name not in _ASIDE}
    text = json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "big")


def tokens_in(*texts: str) -> int:
    """Guess how many tokens there are in texts, as a rule of thumb has it."""
    return max(1, math.ceil(sum(map(len, texts)) / _CHARACTERS_A_TOKEN))


def input_tokens(*texts: str) -> int:
    """Guess what a request weighs."""
    return _FRAMING + tokens_in(*texts)


def answer(ask: ModelRequest, wanted: AnswerSettings) -> SimulatedAnswer:
    """Say what is asked for, in the form it is asked for."""
    if ask.schema is None:
        return _cut(_as_text(_chosen(ask, wanted)), ask.max_tokens)
    value = _verdict(ask, wanted)
    text = json.dumps(value, ensure_ascii=False)
    if ask.tool is None:
        return _cut(text, ask.max_tokens)
    return SimulatedAnswer("", tokens_in(text), ask.tool, value)


def _verdict(ask: ModelRequest, wanted: AnswerSettings) -> Json:
    """Fill in the form, unless the answer to this prompt was given as one."""
    given = wanted.answers.get(ask.prompt) if wanted.mode == "map" else None
    if isinstance(given, dict):
        return given
    passed = luck(wanted.seed, ask.digest, "verdict") < wanted.pass_rate
    return fill(ask.schema, AnswerQuality(passed, ask.digest ^ wanted.seed))


def _chosen(ask: ModelRequest, wanted: AnswerSettings) -> object:
    match wanted.mode:
        case "echo":
            return ask.prompt
        case "text":
            return wanted.text
        case "map" if ask.prompt in wanted.answers or "*" in wanted.answers:
            return wanted.answers.get(ask.prompt, wanted.answers.get("*"))
        case "map" | "plausible":
            return _plausible(ask.digest ^ wanted.seed, wanted.output_tokens)
        case _:
            raise ValueError(wanted.mode)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plausible(seed: int, tokens: int) -> str:
    """Put sentences together, from half to one and a half times as many tokens as are usual."""
    wanted = tokens * _CHARACTERS_A_TOKEN * (0.5 + luck(seed, "length"))
    said, at, step = list[str](), seed % len(_SENTENCES), 1 + seed % 5 * 2
    length = 0
    while length < wanted:
        said.append(_SENTENCES[at])
        length += len(_SENTENCES[at]) + 1
        at = (at + step) % len(_SENTENCES)
    return " ".join(said)


def _cut(text: str, max_tokens: int) -> SimulatedAnswer:
    said = SimulatedAnswer(text, tokens_in(text))
    if said.output_tokens <= max_tokens:
        return said
    return replace(
        said, text=text[: max_tokens * _CHARACTERS_A_TOKEN], output_tokens=max_tokens, is_cut=True
    )
