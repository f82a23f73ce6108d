"""The values that each key of a spec may have: each check takes a value as written, and returns it parsed.

What makes no sense is a `ValueError` with a sentence that goes on from the key's name.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

from domain.batch_spec import BatchFallback
from domain.eligibility import is_label
from scoreline.submit.datasets.file_formats import looks_like_file
from scoreline.submit.datasets.record import kind_of

Check = Callable[[Any], Any]

MOST_DOLLARS = 10**9

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[smhd])+")
_STRETCH = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def text(value: object) -> str:
    """Take any text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise ValueError(f"must be a text, this is {'empty' if value == '' else kind_of(value)}")


def name(value: object) -> str:
    """Take a short text without control characters."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    found = text(value)
    if len(found) > 200 or _CONTROL.search(found):
        raise ValueError("must have at most 200 characters, and no control characters")
    return found


def label(value: object) -> str:
    """Take a label that executors declare."""
    found = name(value)
    if not is_label(found):
        raise ValueError(f"must be labels such as gpu or region=eu; {found!r} is not")
    return found


def many(check: Check) -> Check:
    """Take one value or a list of them, as a list."""

    def check_each(value: object) -> tuple[Any, ...]:
        values = value if isinstance(value, list | tuple) else [value]
        if not values:
            raise ValueError("must not be an empty list: leave it out instead")
        return tuple(check(item) for item in values)

    return check_each


def whole(low: int, high: int) -> Check:
    """Take a whole number."""

    def check(value: object) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        problem = f"{value} is not" if is_number else f"this is {kind_of(value)}"
        raise ValueError(f"must be a whole number from {low} to {high}; {problem}")

    return check


def number(high: float) -> Check:
    """Take a number that is more than nothing."""

    def check(value: object) -> float:
        with suppress(ValueError):
            # A text, too: YAML takes 1e6 for one.
            found = float(value) if isinstance(value, str | int | float) else 0.0
            if not isinstance(value, bool) and 0 < found <= high:
                return found
        raise ValueError(f"must be a number, more than nothing and at most {high:g}; {value!r} is not")

    return check


def dollars(value: object) -> Decimal:
    """Take an amount of money: 5, 0.5, "$5"."""
    plain = value.strip().removeprefix("$") if isinstance(value, str) else value
    if isinstance(plain, str | int | float) and not isinstance(plain, bool):
        with suppress(InvalidOperation):
            amount = Decimal(str(plain))
            if amount.is_finite() and 0 < amount <= MOST_DOLLARS:
                return amount
    raise ValueError(f"must be an amount in dollars, such as 5 or 0.50; {value!r} is not")


def share(value: object) -> float:
    """Take a number from 0 to 1."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise ValueError("must be a number from 0 to 1, such as 0.9")


def switch(value: object) -> bool:
    """Take true or false."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"must be true or false, this is {kind_of(value)}")


def batch_api(value: object) -> BatchFallback | None:
    """Take true or false, or what becomes of requests that get no answer: resubmit, or sync."""
    match value:
        case bool():
            return BatchFallback.RESUBMIT if value else None
        case str() if value in set(BatchFallback):
            return BatchFallback(value)
        case _:
            raise ValueError(f"must be true or false, or one of resubmit and sync, not {value!r}")


def one_of(*words: str) -> Check:
    """Take one of a few words."""

    def check(value: object) -> str:
        if value in words:
            return str(value)
        raise ValueError(f"must be {' or '.join(words)}, not {value!r}")

    return check


def duration(longest: float, *, may_be_nothing: bool = False) -> Check:
    """Take seconds, or a text such as 90s, 30m, 1h30m."""

    def check(value: object) -> float:
        seconds = _seconds(value)
        if seconds is None:
            raise ValueError(f"must be seconds, or a time such as 90s, 30m or 1h30m; {value!r} is neither")
        if not 0 <= seconds <= longest or not (seconds or may_be_nothing):
            raise ValueError(f"must be more than nothing and at most {longest / 86_400:g} days")
        return seconds

    return check


def _seconds(value: object) -> float | None:
    match value:
        case bool():
            return None
        case int() | float() if isfinite(value):
            return float(value)
        case str() if _DURATION.fullmatch(value.strip()):
            return sum(float(number) * _UNITS[unit] for number, unit in _STRETCH.findall(value))
        case str() if re.fullmatch(r"\d+(\.\d+)?", value.strip()):
            return float(value)
        case _:
            return None


def described(value: object) -> str | dict[str, Any]:
    """Take a target or an evaluator: its short form, or a mapping with its type."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError(f"must be a text or a mapping with a `type`, this is {kind_of(value)}")


def mapping(value: object) -> dict[str, Any]:
    """Take a mapping of keys, each of which is looked at by itself."""
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError(f"must be a mapping of keys, this is {kind_of(value)}")


def dataset(value: object) -> dict[str, Any]:
    """Take a file's path, an imported name, or a mapping; a text is a path if it looks like one."""
    if isinstance(value, Mapping):
        return dict(value)
    found = text(value)
    return {"path" if _looks_like_path(found) else "name": found}


def dataset_name(value: object) -> str:
    """Take a name for a dataset, one by which a batch can ask for it."""
    found = name(value)
    if _looks_like_path(found):
        raise ValueError("must have no slash, and not end like a file: a batch would look for a file")
    return found


def _looks_like_path(found: str) -> bool:
    return looks_like_file(found) or "/" in found
