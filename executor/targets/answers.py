"""Conversion of a target's output to an answer that can be recorded.

An answer is never truncated: part of an answer would be scored as if it were complete.
"""

from collections.abc import Mapping

from pydantic import JsonValue, ValidationError

from domain.template import as_text
from eventlog import payloads as p
from eventlog.characters import without_half_characters
from executor.contract import Permanent, TargetReply

_USAGE_NAMES = {
    "input_tokens": ("input_tokens", "prompt_tokens", "input"),
    "output_tokens": ("output_tokens", "completion_tokens", "output"),
}


def reply(
    output: JsonValue, *, usage: JsonValue = None, cost_usd: JsonValue = None, latency_ms: float = 0.0
) -> TargetReply:
    """Make a reply; raises `Permanent` where it can't be recorded."""
    text = without_half_characters(as_text(output))
    if len(text) > p.MAX_TEXT:
        raise too_large(f"the answer has {len(text):,} characters, and {p.MAX_TEXT:,} are allowed")
    try:
        answer = p.Answer(
            output=text,
            usage=usage_of(usage),
            cost_usd=cost_usd if cost_usd is not None else 0.0,  # type: ignore[arg-type]  # validated
            latency_ms=latency_ms,
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise Permanent("answer", f"{where} of the answer: {first['msg']}") from None
    return TargetReply(answer)


def too_large(message: str) -> Permanent:
    """Reject an answer that is too long to be stored."""
    return Permanent("too_large", message)


def usage_of(value: JsonValue) -> p.TokenUsage:
    """Parse token counts by any of the usual names; invalid counts are ignored."""
    if not isinstance(value, Mapping):
        return p.TokenUsage()
    return p.TokenUsage(**{ours: _count(value, names) for ours, names in _USAGE_NAMES.items()})


def _count(usage: Mapping[str, JsonValue], names: tuple[str, ...]) -> int:
    found = next((usage[name] for name in names if name in usage), 0)
    return found if isinstance(found, int) and 0 <= found <= 2**53 else 0
