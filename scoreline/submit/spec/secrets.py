"""Keys that were written out: a spec is stored and shown, so it must name them, not hold them."""

import re
from typing import Any

from pydantic import JsonValue

from eventlog.secret_sources import KEY_SHAPE, SECRET_NAME
from providers.headers import literal_parameter

_LOGIN = re.compile(r"\b(?:bearer|basic)\s+(?!\$)[\w.~+/=-]{6,}", re.IGNORECASE)
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
    if KEY_SHAPE.search(value) or _LOGIN.search(value) or _PASSWORD_IN_URL.search(value):
        return True
    where, _, last = name.rpartition(".")
    named = SECRET_NAME if where.rpartition(".")[2] == "env" else _HOLDS_SECRET
    return bool(named.search(last)) and "$" not in value and bool(value) and not _SWITCH.fullmatch(value)


def _first(names: Any) -> str | None:  # noqa: ANN401 - a generator of names
    return next((name for name in names if name is not None), None)
