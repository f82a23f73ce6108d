"""Headers with secrets in them: named in a spec, taken from the environment when a request is made.

    Authorization: Bearer $SERVICE_TOKEN

The value is in no spec, event, log or message; where the other side repeats it, it is blotted out.
"""

import re
from collections.abc import Mapping

from executor.blotting import TELLTALE
from executor.contract import Permanent

_VARIABLE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_SENDABLE = re.compile(r"[\x20-\x7e]*")


def check_headers(headers: Mapping[str, str]) -> None:
    """Refuse headers that can't be sent, and secrets that would be stored; raises `ValueError`."""
    for name, value in headers.items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            raise ValueError(f"{name!r} is not the name of a header")
        if not _SENDABLE.fullmatch(value):
            raise ValueError(f"the header {name} has a character that can't be sent")
        if TELLTALE.search(name) and not _VARIABLE.search(value):
            raise ValueError(
                f"the header {name} would be stored with the batch: put its value into an environment "
                f"variable of the executors and write $NAME"
            )


def fill_in(headers: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Put in what `$NAME` stands for; raises `Permanent`, which says the name and never the value."""
    return {name: _filled(name, value, environ) for name, value in headers.items()}


def secrets_of(headers: Mapping[str, str], environ: Mapping[str, str]) -> frozenset[str]:
    """Collect what the headers take from the environment."""
    names = {name for value in headers.values() for name in _VARIABLE.findall(value)}
    return frozenset(environ[name] for name in names if name in environ)


def _filled(header: str, value: str, environ: Mapping[str, str]) -> str:
    def put_in(match: re.Match[str]) -> str:
        if match[1] not in environ:
            raise Permanent(
                "configuration", f"the header {header} wants ${match[1]}, which this executor does not have"
            )
        return environ[match[1]]

    filled = _VARIABLE.sub(put_in, value)
    if not _SENDABLE.fullmatch(filled):
        raise Permanent("configuration", f"the value for the header {header} can't be sent in a header")
    return filled
