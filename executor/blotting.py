"""Hiding secrets in texts that will be stored: what the other side repeats, what an exception says."""

import re
from collections.abc import Iterable, Mapping

BLOT = "***"
SHORTEST = 6
"""Characters below which a value is too common to be blotted out."""
TELLTALE = re.compile(r"auth|token|secret|passw|credential|cookie|(api|access)[-_]?key", re.IGNORECASE)
"""Names whose values nobody wants to see stored."""


def secrets_in(environ: Mapping[str, str]) -> frozenset[str]:
    """Collect the values of variables that sound like secrets."""
    return frozenset(value for name, value in environ.items() if TELLTALE.search(name))


def blot_out(text: str, secrets: Iterable[str]) -> str:
    """Replace each secret in a text; the longest first, in case one begins with another."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST:
            text = text.replace(secret, BLOT)
    return text
