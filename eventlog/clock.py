"""The one place that reads the wall clock; pure modules get `now` passed in."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the one place
