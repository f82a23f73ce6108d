"""The value of `--since`: an age such as 15m or 2h, or a time. Pure."""

import re
from datetime import UTC, datetime, timedelta

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_AGE = re.compile(r"(\d{1,9})([smhd])")


def parse_since(text: str) -> timedelta | datetime:
    """Parse an age or a time, UTC by default; raises ValueError for anything else."""
    if age := _AGE.fullmatch(text):
        return _age(int(age[1]), UNITS[age[2]])
    moment = datetime.fromisoformat(text)
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError as outside:
        raise ValueError(f"{text} is out of range") from outside


def _age(count: int, unit: str) -> timedelta:
    age = timedelta(**{unit: count})
    if age > timedelta(days=36_500):
        raise ValueError(f"{count} {unit} is out of range")
    return age
