"""Servers that can't be used: the error that explains why, and the words that every check shares.

Messages of the drivers are never printed: they quote parts of the URL, which are the password where it is
badly escaped.
"""

import re

TIMEOUT = 3
"""How long a check waits for a server, in seconds."""


class Unavailable(Exception):  # noqa: N818 - a state of the world, not a mistake
    """A server can't be used; the message states in one line why, and what to do."""

    def __init__(self, service: str, problem: str, advice: str) -> None:
        super().__init__(f"{service} {problem}. {advice}")
        self.service = service
        self.problem = problem
        self.advice = advice


def redact(url: str) -> str:
    """The URL without its passwords, also where they are badly escaped."""
    without_login = re.sub(r"://([^:@/]*):.*@", r"://\1:***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", without_login, flags=re.IGNORECASE)


def silent(where: str, reason: str, setting: str) -> Unavailable:
    """Return the error of a server that does not answer."""
    advice = f"Start it, or unset {setting} to use the embedded server."
    return Unavailable(where, f"does not answer ({reason})", advice)


def malformed(setting: str, example: str) -> Unavailable:
    """Return the error of a URL that can't be parsed, with an example of one that can."""
    return Unavailable(setting, "is not a valid URL", f"Write it as {example}.")
