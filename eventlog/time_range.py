"""The range of event times that every reader can represent, in any time zone.

PostgreSQL stores years that Python's `datetime` cannot hold, and a time within a day of either end of the
calendar overflows when it is converted to another time zone. Events outside the years 2 to 9998 are
rejected on intake; a time that an earlier release stored is clamped when it is read.
"""

from datetime import UTC, datetime

EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)


def clamped(moment: datetime) -> datetime:
    """Return the time itself, or the nearest one that converts to every time zone."""
    if EARLIEST.year < moment.year < LATEST.year:
        return moment
    return min(max(moment, EARLIEST), LATEST)
