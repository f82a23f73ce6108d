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
"""Names of variables, headers, options and query parameters whose values are secrets."""
OTLP_HEADERS = re.compile(r"OTEL_EXPORTER_OTLP_(?:\w+_)?HEADERS")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_PLAIN = re.compile(r"true|false|yes|no|none|null|[0-9]{1,9}", re.IGNORECASE)


def secrets_in(environ: Mapping[str, str]) -> frozenset[str]:
    """Collect the secrets of an environment: by the names of variables, and in URLs whatever the name."""
    return frozenset(each for name, value in environ.items() for each in _secrets_of(name, value.strip()))


def short_secrets(environ: Mapping[str, str]) -> list[str]:
    """Name the variables with a secret that is too short to be redacted in every form."""
    return sorted(
        name
        for name, value in environ.items()
        if any(0 < len(each) < SHORTEST_ENCODED for each in _secrets_of(name, value.strip()))
    )


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
    elif SECRET_NAME.search(name) and not _is_plain(value):
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


def _is_plain(value: str) -> bool:
    """Decide that a value is none though its name is that of a secret: a switch, a number, a path."""
    return bool(_PLAIN.fullmatch(value)) or (value.startswith("/") and os.path.exists(value))  # noqa: PTH110 - as text
