"""Keys that were written out: a spec is stored and shown, so it must name them, not hold them."""

import re
from typing import Any

from pydantic import JsonValue

_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|rk)-[\w-]{8,}|\bgh[pousr]_\w{16,}|\bxox[abprs]-[\w-]{8,}|\bAKIA[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\b(?:bearer|basic)\s+(?!\$)[\w.~+/=-]{6,}",
    re.IGNORECASE,
)
_HOLDS_SECRET = re.compile(r"(?:^|[-_])(?:api[-_]?key|authorization|password|secret|token)$", re.IGNORECASE)
_PASSWORD_IN_URL = re.compile(r"://[^/\s:@$]*:[^/\s@$]+@")


def find_secret(value: JsonValue, name: str = "") -> str | None:
    """Name the option that holds what looks like a key, if one does."""
    match value:
        case str() if _is_secret(value, name):
            return name
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
    return bool(value) and "$" not in value and bool(_HOLDS_SECRET.search(name.rpartition(".")[2]))


def _first(names: Any) -> str | None:  # noqa: ANN401 - a generator of names
    return next((name for name in names if name is not None), None)
