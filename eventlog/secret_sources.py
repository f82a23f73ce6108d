"""Where the secrets of a process come from: variables of its environment, and passwords in URLs."""

import base64
import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from eventlog.redaction import SHORTEST_ENCODED

SECRET_NAME = re.compile(
    r"auth(?!ors?(?:[-_]|$))|token|secret|passw|passphrase|credential|cookie|signature|session[-_]?id"
    r"|(?:api|access|private|functions|subscription|account|service|master|encryption|rapidapi)[-_]?key"
    r"|(?:^|[-_])(?:key|sig|pwd|pass)$",
    re.IGNORECASE,
)
"""Names of headers, options and query parameters whose values are secrets."""
_SECRET_VARIABLE = re.compile(
    r"(?:^|[-_.])(?:[a-z0-9]*(?:token|secret|password|passwd|passphrase|credential)s?|auth|authorization|jwt"
    r"|cookies?|signature|sshpass"
    r"|(?:api|access|private|functions|subscription|account|service|master|encryption|rapidapi)[-_]?keys?"
    r")[0-9]*(?=[-_.]|$)"
    r"|(?:^|[-_.])(?:keys?|sig|pwd|pass|pat)[-_]?[0-9]*$",
    re.IGNORECASE,
)
"""Whole words in the names of variables whose values are secrets."""
_HARMLESS_VARIABLE = re.compile(
    r".*_(?:file|path|name|method|mode|domain|sock|dir|type|id)"
    r"|(?:eos|bos|stop|max|min|num|pad|unk|sep|cls|mask|primary|foreign|partition|sort|public)_(?:token|key)s?(?:_.*)?"
    r"|pwd",
    re.IGNORECASE,
)
"""Names that have such a word and hold something about a secret, or a token or key of another kind."""
KEY_SHAPE = re.compile(
    r"\b(?:(?:sk|pk|rk)-[\w-]{8,}|gh[pousr]_\w{16,}|xox[abprs]-[\w-]{8,}|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}"
    r"|glpat-[\w-]{16,}|hf_\w{20,}|nvapi-[\w-]{20,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)",
    re.IGNORECASE,
)
"""Shapes of well-known keys."""
_SHORTEST_KEY = 16
OTLP_HEADERS = re.compile(r"OTEL_EXPORTER_OTLP_(?:\w+_)?HEADERS")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_SWITCH = re.compile(r"true|false|yes|no|none|null|[0-9]{1,9}", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{1,20}|[A-Z]{1,20}")


def secrets_in(environ: Mapping[str, str]) -> frozenset[str]:
    """Collect the secrets of an environment: by name, and by shape and in URLs whatever the name."""
    return frozenset(each for name, value in environ.items() for each in _secrets_of(name, value.strip()))


def unredacted_variables(environ: Mapping[str, str]) -> list[str]:
    """Name the variables whose secret is too short to be redacted in every form, or a word or path."""
    return sorted(
        name
        for name, value in environ.items()
        if (_is_named_secret(name) and _is_word_or_path(value.strip()))
        or any(0 < len(each) < SHORTEST_ENCODED for each in _secrets_of(name, value.strip()))
    )


def holds_key(text: str) -> bool:
    """Decide whether a text holds what has the shape of a well-known key: long, with a digit in it."""
    return any(_is_key(found[0]) for found in KEY_SHAPE.finditer(text))


def secrets_in_url(url: str) -> frozenset[str]:
    """Collect the password of a URL, and the parameters of its query that are named like secrets."""
    try:
        parsed = urlsplit(url)
        return frozenset(each for each in _of_url(parsed) if each)
    except ValueError:
        return frozenset()


def basic_password(value: str) -> str | None:
    """Return the password in the credentials of HTTP's Basic scheme; None where they are none."""
    try:
        user, sign, password = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return None
    return password if sign and user.isprintable() and password.isprintable() else None


def _secrets_of(name: str, value: str) -> Iterator[str]:
    if OTLP_HEADERS.fullmatch(name):
        yield from _of_header_list(value)
    elif _URL.fullmatch(value):
        yield from secrets_in_url(value)
        yield from (value,) if "WEBHOOK" in name.upper() else ()  # the URL is the credential
    elif (KEY_SHAPE.fullmatch(value) and _is_key(value)) or (
        _is_named_secret(name) and not _is_plain(value)
    ):
        yield value


def _of_url(parsed: SplitResult) -> Iterator[str]:
    login, sign, _ = parsed.netloc.rpartition("@")
    password = login.partition(":")[2] if sign else ""
    yield from (password, unquote(password))
    for name, value in parse_qsl(parsed.query):
        if SECRET_NAME.search(name):
            yield value


def _of_header_list(value: str) -> Iterator[str]:
    """Read the values of `name=value,name=value`, percent-encoded, as OpenTelemetry writes headers."""
    for pair in value.split(","):
        words = pair.partition("=")[2].strip()
        yield from (words, unquote(words), unquote(words).rpartition(" ")[2])


def _is_named_secret(name: str) -> bool:
    return bool(_SECRET_VARIABLE.search(name)) and not _HARMLESS_VARIABLE.fullmatch(name)


def _is_plain(value: str) -> bool:
    return bool(_SWITCH.fullmatch(value)) or _is_word_or_path(value)


def _is_word_or_path(value: str) -> bool:
    """Decide that a value is no secret though its name is that of one: a word, or a path that exists."""
    if _SWITCH.fullmatch(value):
        return False
    return bool(_WORD.fullmatch(value)) or (value.startswith("/") and os.path.exists(value))  # noqa: PTH110 - as text


def _is_key(found: str) -> bool:
    return len(found) >= _SHORTEST_KEY and any(each.isdigit() for each in found)
