"""Classification of HTTP replies: an answer, or a fault."""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from pydantic import JsonValue
from pydantic_core import from_json

from domain.template import UnknownField, look_up
from eventlog.redaction import redact_head
from executor.contract import CallFault, Permanent, RateLimited, TargetReply, Transient, Unreachable
from executor.targets.answers import reply
from providers.json_reader import check_values

OUTPUT_ALIASES = ("output", "answer", "response", "text", "completion")
"""Fields searched for the answer in a JSON reply, in this order, unless a path is configured."""
LONGEST_WAIT = timedelta(hours=1)
QUOTE = 300
_TRY_AGAIN = {408, 425}
_TEXT_ENCODINGS = {
    "utf-8", "utf-8-sig", "ascii", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "iso8859-1",
    *(f"iso8859-{number}" for number in range(2, 17)), *(f"cp{number}" for number in range(1250, 1259)),
    "koi8-r", "koi8-u", "gbk", "gb2312", "gb18030", "big5", "shift_jis", "euc_jp", "euc_kr",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReplyPaths:
    """Fields of a JSON reply, or dotted paths into them."""

    output: str | None = None
    usage: str | None = None
    cost: str | None = None


def fault_of(status: int, headers: Mapping[str, str], body: str, *, now: datetime) -> CallFault | None:
    """Raise the fault of an error reply."""
    if status < 300:
        return None
    message = f"the server answered {status}: {redact_head(body, QUOTE)}"
    if status == 429:
        text = headers.get("retry-after", "")
        wait = retry_after(text, now=sent_at(headers, now=now)) if text.strip() else None
        return RateLimited(message, retry_after=wait)
    if status >= 500:
        return Unreachable(f"http_{status}", message)
    if status in _TRY_AGAIN:
        return Transient(f"http_{status}", message)
    return Permanent(f"http_{status}", message)


def sent_at(headers: Mapping[str, str], *, now: datetime) -> datetime:
    """Return the server's own time, by which it means the dates that it sends; ours where it has none."""
    try:
        date = parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return now
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def retry_after(text: str, *, now: datetime) -> timedelta:
    """Parse how long to wait, in seconds or until a date; one second if the header is invalid."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return timedelta(seconds=min(int(text[:9]), LONGEST_WAIT.total_seconds()))
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return timedelta(seconds=1)
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max(until - now, timedelta(0)), LONGEST_WAIT)


def text_encoding(charset: str | None) -> str:
    """Return the encoding of a text; UTF-8 for a charset that is none, such as Python's name for zlib."""
    try:
        found = codecs.lookup(charset or "utf-8")
    except (LookupError, ValueError):
        return "utf-8"
    return found.name if found.name in _TEXT_ENCODINGS else "utf-8"


def is_json_type(content_type: str) -> bool:
    """Whether a reply of this content type is JSON."""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")


def answer_of(body: str, paths: ReplyPaths, *, latency_ms: float, is_json: bool = False) -> TargetReply:
    """Find the answer in a body, JSON if `is_json`; raises a `CallFault` where it has none."""
    parsed = _parsed(body, is_json=is_json)
    output = _output_at(paths.output, parsed, body) if paths.output else _likely_output(parsed, body)
    cost = _found(parsed, paths.cost)
    cost = cost if isinstance(cost, int | float) and 0 <= cost <= 1e12 else None
    return reply(output, usage=_found(parsed, paths.usage), cost_usd=cost, latency_ms=latency_ms)


def _parsed(body: str, *, is_json: bool) -> JsonValue:
    """Read JSON; None where it is none and was not announced, or has more values than a reply can have."""
    try:
        check_values(body.encode())
        parsed: JsonValue = from_json(body, allow_inf_nan=False)
    except ValueError:
        if is_json and body.strip():
            raise _garbage(body) from None
        return None
    return parsed


def _garbage(body: str) -> Transient:
    return Transient("garbage", f"the reply is not JSON: {redact_head(body, QUOTE)}")


def _output_at(path: str, parsed: JsonValue, body: str) -> JsonValue:
    if parsed is None:
        raise _garbage(body)
    output = _found(parsed, path)
    if output is None:
        raise Permanent("no_output", f"the reply has nothing at {path!r}: {redact_head(body, QUOTE)}")
    return output


def _likely_output(parsed: JsonValue, body: str) -> JsonValue:
    if isinstance(parsed, Mapping):
        return next((parsed[name] for name in OUTPUT_ALIASES if parsed.get(name) is not None), body)
    return parsed if isinstance(parsed, str) else body


def _found(parsed: JsonValue, path: str | None) -> JsonValue:
    if path is None:
        return None
    try:
        return look_up(parsed if isinstance(parsed, Mapping) else {"": parsed}, path)
    except UnknownField:
        return None
