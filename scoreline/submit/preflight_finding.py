"""A finding of a preflight check."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PreflightFinding:
    """A sentence for the user, and whether the batch is refused for it."""

    text: str
    is_fatal: bool = True
    is_avoidable: bool = True
    """Whether submission accepts the batch without preflight."""
