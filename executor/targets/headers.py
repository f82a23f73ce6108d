"""Headers of requests: checked when a spec is read, filled in when a request is made."""

import re
from collections.abc import Mapping

from eventlog.secret_sources import SECRET_NAME
from executor.contract import Permanent
from providers import headers as filling
from providers.headers import SENDABLE, VARIABLE, UnfilledHeader, literal_parameter

_NOT_SECRET = re.compile(r"(?:idempotency|cache|partition|routing|sort|dedup\w*)-key", re.IGNORECASE)
_LITERAL = re.compile(r"(?=[\w+/.=-]*\d)[\w+/.=-]{12,}")
"""Text next to `$NAME` that itself looks like a key, not like the name of a scheme."""


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that can't be sent, and secrets that would be stored; raises `ValueError`."""
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise ValueError(f"{name!r} is not the name of a header")
        if not SENDABLE.fullmatch(value):
            raise ValueError(f"the header {name} has a character that can't be sent")
        if SECRET_NAME.search(name) and not _NOT_SECRET.search(name) and _is_literal(value):
            raise ValueError(
                f"the header {name} would be stored with the batch: put its value into an environment "
                f"variable of the executors and write $NAME, such as {name}: {_example(name)}"
            )


def fill_in(headers: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Put in what `$NAME` stands for; raises `Permanent`, which names the variable and never the value."""
    try:
        return filling.fill_in(headers, environ)
    except UnfilledHeader as error:
        raise Permanent("configuration", str(error)) from None


def check_query(url: str) -> None:
    """Refuse a URL whose query holds a key that would be stored; raises `ValueError`."""
    if parameter := literal_parameter(url):
        raise ValueError(
            f"the parameter {parameter} would be stored with the batch: put its value into an environment "
            f"variable of the executors and write {parameter}=$NAME"
        )


def fill_in_query(url: str, environ: Mapping[str, str]) -> str:
    """Put in what `$NAME` in the query stands for; raises `Permanent`, as `fill_in` does."""
    try:
        return filling.fill_in_query(url, environ)
    except UnfilledHeader as error:
        raise Permanent("configuration", str(error)) from None


def _is_literal(value: str) -> bool:
    without = VARIABLE.sub("", value)
    is_plain = not value or re.fullmatch(r"[0-9]{1,9}|true|false", value) is not None
    return not is_plain and (without == value or bool(_LITERAL.search(without)))


def _example(name: str) -> str:
    variable = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_")
    return "Bearer $SERVICE_TOKEN" if name.lower() == "authorization" else f"${variable}"
