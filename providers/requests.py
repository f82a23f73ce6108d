"""Request bodies for models and parsing of their replies: dictionaries, for single calls and batches.

    request_of("anthropic", {"model": "claude-…", "parameters": {…}}, prompt)   params of messages.create
    answer_of(message)                                                          text, tokens, stop reason

Texts of options are sent unchanged: only the prompt is a template, which the caller has rendered.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from pydantic import JsonValue

from eventlog.payloads import TokenUsage
from providers.table import PROVIDERS, Sdk

MAX_TOKENS = 1_024
"""Maximum tokens of an answer, which Anthropic's API requires, unless an option sets it."""
LONGEST_UNSTREAMED = 21_333
"""Tokens above which an answer takes so long that it has to be streamed."""
Turns = Sequence[tuple[str, str]]
RESERVED = frozenset(
    {"model", "messages", "system", "stream", "stream_options", "extra_headers", "timeout"}
)
"""Parameters that have options of their own, or are not allowed."""
UNSUPPORTED = frozenset(
    {"tools", "tool_choice", "functions", "function_call", "n", "extra_body", "extra_query"}
)
_COMPLETION_TOKENS = ("o1*", "o3*", "o4*", "gpt-5*", "gpt-6*")
"""Models that take `max_completion_tokens`, and refuse `max_tokens`."""
_FILTERED = {"refusal", "content_filter"}


class InvalidReply(ValueError):  # noqa: N818 - what came back
    """A reply that is none: not what the API promises."""


class ModelAnswer(NamedTuple):
    """The parsed answer of a model."""

    output: str
    usage: TokenUsage
    stop_reason: str

    @property
    def is_filtered(self) -> bool:
        """Whether the provider filtered the answer, so that it is not the model's own."""
        return self.stop_reason in _FILTERED


def request_of(
    provider: str, options: Mapping[str, JsonValue], prompt: str, history: Turns = ()
) -> dict[str, Any]:
    """Make the parameters of one call, for the SDK that a provider is called with."""
    sdk = PROVIDERS[provider].sdk
    match sdk:
        case Sdk.ANTHROPIC:
            return _messages(options, prompt, history)
        case Sdk.OPENAI:
            return _chat(options, prompt, history)
        case _:
            raise ValueError(f"{PROVIDERS[provider].title} can't be called by its name")


def refuse_parameters(parameters: Iterable[str]) -> None:
    """Refuse parameters that would change what a reply is; raises `ValueError`."""
    for name in parameters:
        if name in RESERVED:
            raise ValueError(f"{name} is not for the parameters: it is an option of its own, or set here")
        if name in UNSUPPORTED:
            raise ValueError(f"{name} is not supported: an answer is one text")


def must_stream(params: Mapping[str, Any]) -> bool:
    """Whether an answer may become so long that it has to be streamed."""
    limit = params.get("max_tokens", 0)
    return isinstance(limit, int) and limit > LONGEST_UNSTREAMED


def tokens_guessed(options: Mapping[str, JsonValue]) -> float:
    """Estimate the tokens of the first call: the fixed part of the request, half of the maximum output."""
    parameters = _mapping(options.get("parameters"))
    limits = (parameters.get(name) for name in ("max_tokens", "max_completion_tokens"))
    allowed = next((limit for limit in limits if isinstance(limit, int)), MAX_TOKENS)
    sent = len(str(options.get("system") or "")) + len(str(options.get("messages") or ""))
    return float(200 + sent // 4 + min(allowed, 4 * MAX_TOKENS) // 2)


def max_output_of(params: Mapping[str, Any]) -> int | None:
    """Return the longest answer that a request allows, in tokens; None where it sets no limit."""
    limits = (params.get(name) for name in ("max_tokens", "max_completion_tokens"))
    return next((limit for limit in limits if isinstance(limit, int)), None)


def characters_of(params: Mapping[str, Any]) -> int:
    """Count the characters of all texts that a request sends as input."""
    texts = (params.get(name, "") for name in ("system", "messages", "tools", "response_format"))
    return sum(map(_characters, texts))


def _characters(value: object) -> int:
    match value:
        case str():
            return len(value)
        case Mapping():
            return sum(len(str(name)) + _characters(each) for name, each in value.items())
        case list() | tuple():
            return sum(map(_characters, value))
        case _:
            return len(str(value))


def answer_of(message: object) -> ModelAnswer:
    """Read a reply of the Messages API or of Chat Completions; raises `InvalidReply`."""
    if not isinstance(message, Mapping):
        raise InvalidReply("the reply is no object")
    try:
        return _answer_of_chat(message) if "choices" in message else _answer_of_message(message)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise InvalidReply(
            f"the reply lacks what it should have: {type(error).__name__}: {error}"
        ) from None


def _messages(options: Mapping[str, JsonValue], prompt: str, history: Turns) -> dict[str, Any]:
    system = {"system": options["system"]} if options.get("system") else {}
    return {
        "model": options["model"],
        "max_tokens": MAX_TOKENS,
        **_mapping(options.get("parameters")),
        **system,
        "messages": _turns(options, prompt, history),
    }


def _chat(options: Mapping[str, JsonValue], prompt: str, history: Turns) -> dict[str, Any]:
    system = [{"role": "system", "content": options["system"]}] if options.get("system") else []
    parameters = dict(_mapping(options.get("parameters")))
    model = str(options["model"])
    if "max_tokens" in parameters and any(fnmatchcase(model, pattern) for pattern in _COMPLETION_TOKENS):
        parameters["max_completion_tokens"] = parameters.pop("max_tokens")
    return {"model": model, **parameters, "messages": [*system, *_turns(options, prompt, history)]}


def _turns(options: Mapping[str, JsonValue], prompt: str, history: Turns) -> list[dict[str, Any]]:
    given: Any = options.get("messages") or ()
    turns = [{"role": each["role"], "content": each["content"]} for each in given]
    for asked, answered in history:
        turns += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return [*turns, {"role": "user", "content": prompt}]


def _answer_of_message(message: Mapping[str, Any]) -> ModelAnswer:
    blocks = message["content"]
    if not isinstance(blocks, list):
        raise InvalidReply("the reply has no list of contents")
    texts = [_text(block["text"]) for block in blocks if block["type"] == "text"]
    usage = message["usage"]
    # Cached input tokens are reported separately from the rest.
    cached = (usage.get(name) or 0 for name in ("cache_creation_input_tokens", "cache_read_input_tokens"))
    counted = TokenUsage(
        _count(usage["input_tokens"]) + sum(map(_count, cached)), _count(usage["output_tokens"])
    )
    return ModelAnswer("".join(texts), counted, _stopped(message["stop_reason"]))


def _answer_of_chat(message: Mapping[str, Any]) -> ModelAnswer:
    choice = message["choices"][0]
    stopped, text_parts = _stopped(choice["finish_reason"]), choice["message"]
    output = text_parts.get("content")
    if output is None:
        # A refusal is an answer; a model that spent its limit on reasoning has returned none.
        output = text_parts.get("refusal") or ("" if stopped == "length" or stopped in _FILTERED else None)
    usage = _mapping(message.get("usage"))
    counted = TokenUsage(
        _count(usage.get("prompt_tokens") or 0), _count(usage.get("completion_tokens") or 0)
    )
    return ModelAnswer(_text(output), counted, stopped)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidReply("the reply has no text where its text should be")
    return value


def _stopped(reason: object) -> str:
    if not isinstance(reason, str):
        raise InvalidReply("the reply has no stop reason")
    return reason


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 2**53:
        raise InvalidReply("the reply has no number where its tokens should be counted")
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
