"""Keys that were written out: a spec is stored and shown, so it must name them, not hold them."""

import re
from typing import Any

from pydantic import JsonValue

from eventlog.secret_sources import SECRET_NAME
from providers.headers import literal_parameter

_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|rk)-[\w-]{8,}|\bgh[pousr]_\w{16,}|\bxox[abprs]-[\w-]{8,}|\bAKIA[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\bglpat-[\w-]{16,}|\bhf_\w{20,}|\bnvapi-[\w-]{20,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
    r"|\b(?:bearer|basic)\s+(?!\$)[\w.~+/=-]{6,}",
    re.IGNORECASE,
)
_HOLDS_SECRET = re.compile(r"(?:^|[-_])(?:api[-_]?key|authorization|password|secret|token)$", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"://[^/\s:@$]*:[^/\s@$]+@")
_SWITCH = re.compile(r"[0-9]{1,9}|true|false", re.IGNORECASE)


def find_secret(value: JsonValue, name: str = "") -> str | None:
    """Name the option that holds what looks like a key, if one does."""
    match value:
        case str() if _is_secret(value, name):
            return name
        case str() if parameter := literal_parameter(value):
            return f"{name}?{parameter}="
        case dict():
            return _first(
                find_secret(item, f"{name}.{key}" if name else key) for key, item in value.items()
            )
        case list():
            return _first(find_secret(item, f"{name}.{number}") for number, item in enumerate(value))
        case _:
            return None


def _is_secret(value: str, name: str) -> bool:
    if _LOOKS_SECRET.search(value) or _PASSWORD_IN_URL.search(value):
        return True
    where, _, last = name.rpartition(".")
    named = SECRET_NAME if where.rpartition(".")[2] == "env" else _HOLDS_SECRET
    return bool(named.search(last)) and "$" not in value and bool(value) and not _SWITCH.fullmatch(value)


def _first(names: Any) -> str | None:  # noqa: ANN401 - a generator of names
    return next((name for name in names if name is not None), None)
