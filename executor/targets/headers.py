"""Headers with secrets in them: named in a spec, taken from the environment when a request is made.

    Authorization: Bearer $SERVICE_TOKEN

The value is in no spec, event, log or message; where the other side repeats it, it is blotted out.
"""

import re
from collections.abc import Mapping

from executor.contract import Permanent

BLOT = "***"
SHORTEST_SECRET = 6
"""Characters below which a value is too common to be blotted out of texts."""
_NAME = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_TELLTALE = re.compile(r"auth|token|secret|password|cookie|api-?key", re.IGNORECASE)
_SENDABLE = re.compile(r"[\x20-\x7e]*")


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that can't be sent, and secrets that would be stored; raises `ValueError`."""
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise ValueError(f"{name!r} is not the name of a header")
        if not _SENDABLE.fullmatch(value):
            raise ValueError(f"the header {name} has a character that can't be sent")
        if _TELLTALE.search(name) and not _NAME.search(value):
            raise ValueError(
                f"the header {name} would be stored with the batch: put its value into an environment "
                f"variable of the executors and write $NAME"
            )


def fill_in(headers: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Put in what `$NAME` stands for; raises `Permanent`, which says the name and never the value."""
    return {name: _filled(name, value, environ) for name, value in headers.items()}


def blot_out(text: str, headers: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """Hide the values of secrets in a text."""
    for value in headers.values():
        for variable in _NAME.findall(value):
            secret = environ.get(variable, "")
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, BLOT)
    return text


def _filled(header: str, value: str, environ: Mapping[str, str]) -> str:
    def put_in(match: re.Match[str]) -> str:
        if match[1] not in environ:
            raise Permanent(
                "configuration", f"the header {header} wants ${match[1]}, which this executor does not have"
            )
        return environ[match[1]]

    filled = _NAME.sub(put_in, value)
    if not _SENDABLE.fullmatch(filled):
        raise Permanent("configuration", f"the value for the header {header} can't be sent in a header")
    return filled
