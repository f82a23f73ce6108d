"""Moments of a history: a number of entries in order of arrival, or a time. Pure."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from scoreline.formatting import stamp
from scoreline.reports.replay.history import EvaluationHistory

Moment = int | datetime | time
"""A number of entries, a time with date, or a time on the evaluation's day."""

END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class NoSuchMoment(ValueError):  # noqa: N818 - the name is the condition
    """A moment outside the history."""


@dataclass(frozen=True, slots=True)
class Located:
    """A moment in a history: how many entries had arrived, when, and until when nothing else happened."""

    rank: int
    at: datetime
    until: datetime


def parse_moment(text: str) -> Moment:
    """Parse the value of `--at`; raises ValueError where it is no moment."""
    if text.isdecimal():
        return int(text)
    for read in (time.fromisoformat, datetime.fromisoformat):
        with suppress(ValueError):
            moment = read(text)
            return _in_utc(moment)
    raise ValueError(f"{text!r} is no moment")


def _in_utc(moment: datetime | time) -> datetime | time:
    """Return a time in UTC, the default zone; raises ValueError where it is out of range."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return zoned.astimezone(UTC) if isinstance(zoned, datetime) else zoned
    except OverflowError as outside:
        raise ValueError(f"{moment} is no moment") from outside


def locate(history: EvaluationHistory, moment: Moment) -> Located:
    """Return the position of a moment in a history; raises `NoSuchMoment`."""
    arrivals = {line.rank: line.arrived_at for line in history.lines}
    arrivals |= {refusal.rank: refusal.arrived_at for refusal in history.refusals}
    if isinstance(moment, int):
        return _by_number(arrivals, moment)
    first, last = arrivals[1], max(arrivals.values())
    at = _of_the_day(moment, first, last) if isinstance(moment, time) else moment
    if at < first:
        raise NoSuchMoment(f"Nothing had arrived by {stamp(at)}; the first entry came at {stamp(first)}.")
    return Located(max(rank for rank, arrived in arrivals.items() if arrived <= at), at, at)


def _by_number(arrivals: dict[int, datetime], number: int) -> Located:
    """Return the position of an entry, valid until the next one arrived."""
    if number not in arrivals:
        raise NoSuchMoment(f"--at {number}: entries arrived 1 to {len(arrivals)}.")
    following = arrivals.get(number + 1)
    return Located(number, arrivals[number], following or END_OF_TIME)


def _of_the_day(moment: time, first: datetime, last: datetime) -> datetime:
    """Return a time on the evaluation's day, or on the next if it ran past midnight."""
    at = datetime.combine(first.astimezone(moment.tzinfo).date(), moment)
    following = at + timedelta(days=1)
    return following if at < first and following <= last else at
