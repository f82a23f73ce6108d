"""Telling troubles when they begin and when they are over, each once."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from eventlog.clock import utc_now
from scoreline.formatting import printable
from scoreline.invocation import as_started
from scoreline.observability.runbook import RUNBOOK, runbook_link
from scoreline.observability.thresholds import Thresholds
from scoreline.reports.alert_measure import severity_of
from scoreline.reports.alerts import Trouble, troubles
from scoreline.reports.alerts_past import Past
from scoreline.reports.look import Look
from scoreline.reports.standing import is_over
from scoreline.reports.watch import AWAY

Key = tuple[str, str]
State = Literal["firing", "over"]
POSTGRES = Trouble("PostgresDown", "postgres", "PostgreSQL does not answer.", "scoreline batch list")


class News(NamedTuple):
    """A trouble that began, or is over."""

    at: datetime
    state: State
    trouble: Trouble
    seen_since: datetime | None = None
    """When a watcher first saw it."""


def age_of(news: News) -> timedelta | None:
    """Return how long the condition is known to have held; None where only this look is known."""
    begun = [since for since in (news.trouble.since, news.seen_since) if since is not None]
    return news.at - min(begun) if begun else None


@dataclass(slots=True)
class Watchman:
    """Sees looks one after the other, and says what is new."""

    limits: Thresholds = field(default_factory=Thresholds)
    _past: Past | None = None
    _since: dict[Key, datetime] = field(default_factory=dict)
    """Troubles that are there, told or not yet."""
    _told: dict[Key, Trouble] = field(default_factory=dict)

    def see(self, look: Look) -> Iterator[News]:
        """Say what began and what is over since the last look; of a batch that is over nothing more."""
        if is_over(look.snapshot):
            return
        past = Past.before(look) if self._past is None else self._past.after(look, self.limits)
        self._past = past
        yield from self._news(troubles(look, past, self.limits), look.snapshot.now)

    def _news(self, found: list[Trouble], now: datetime) -> Iterator[News]:
        here = {(each.name, each.about): each for each in found}
        self._since = {key: self._since.get(key, now) for key in here}
        for key in [key for key in self._told if key not in here]:
            yield News(now, "over", self._told.pop(key))
        for key, trouble in here.items():
            if key not in self._told and now - self._since[key] >= trouble.patience:
                self._told[key] = trouble
                yield News(now, "firing", trouble, self._since[key])


def seen_once(look: Look, limits: Thresholds) -> list[News]:
    """Say what is wrong now, without patience: there will be no second look."""
    if is_over(look.snapshot):
        return []
    found = troubles(look, Past.before(look), limits)
    return [News(look.snapshot.now, "firing", each) for each in found]


def alert_line(news: News, runbook: str | None = None) -> str:
    """Write news for people, with an absolute link to the runbook where its URL is known."""
    trouble, time = news.trouble, f"[{news.at.astimezone(UTC):%H:%M:%S}]"
    if news.state == "over":
        return f"{time} over: {trouble.name} ({printable(trouble.about)})"
    link = f"  {runbook_link(trouble.name, runbook)}" if runbook else ""
    return f"{time} ALERT {trouble.name}: {trouble.words} → {as_started(trouble.action)}{link}"


def alert_json(news: News, runbook: str | None = None) -> str:
    """Write news for machines."""
    trouble, age = news.trouble, age_of(news)
    measure = trouble.measure
    return json.dumps(
        {
            "alert": trouble.name,
            "severity": severity_of(trouble.name),
            "state": news.state,
            "at": news.at.isoformat(),
            "about": trouble.about,
            "message": trouble.words,
            "value": measure.value if measure else None,
            "threshold": measure.threshold if measure else None,
            "unit": measure.unit if measure else None,
            "age_seconds": None if age is None else age.total_seconds(),
            "action": as_started(trouble.action),
            "runbook": runbook_link(trouble.name, runbook or RUNBOOK),
        }
    )


@dataclass(frozen=True, slots=True)
class Herald:
    """Tells people or machines what is wrong with a batch."""

    tell: Callable[[str], None]
    as_json: bool
    watchman: Watchman = field(default_factory=Watchman)
    runbook: str | None = None

    def see(self, look: Look) -> None:
        """Tell what is new since the last look."""
        self._tell(self.watchman.see(look))

    def see_once(self, look: Look) -> list[News]:
        """Return what is wrong now, and tell machines of it: people get a table."""
        found = seen_once(look, self.watchman.limits)
        if self.as_json:
            self._tell(found)
        return found

    def say(self, words: str) -> None:
        """Make an alert of what a watcher says of PostgreSQL, whose clock is away as well."""
        state: State = "firing" if words == AWAY else "over"
        self._tell([News(utc_now(), state, POSTGRES)])

    def _tell(self, news: Iterable[News]) -> None:
        for each in news:
            self.tell(alert_json(each, self.runbook) if self.as_json else alert_line(each, self.runbook))
