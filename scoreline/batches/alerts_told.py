"""Telling troubles when they begin and when they are over, each once."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from eventlog.clock import utc_now
from scoreline.batches.alerts import Trouble, troubles
from scoreline.batches.alerts_past import Past
from scoreline.batches.look import Look
from scoreline.batches.standing import is_over
from scoreline.batches.watch import AWAY
from scoreline.printable import printable
from scoreline.thresholds import Thresholds

Key = tuple[str, str]
State = Literal["firing", "over"]
POSTGRES = Trouble("PostgresDown", "postgres", "PostgreSQL does not answer.", "scoreline batch list")


class News(NamedTuple):
    """A trouble that began, or is over."""

    at: datetime
    state: State
    trouble: Trouble


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
                yield News(now, "firing", trouble)


def seen_once(look: Look, limits: Thresholds) -> list[News]:
    """Say what is wrong now, without patience: there will be no second look."""
    if is_over(look.snapshot):
        return []
    found = troubles(look, Past.before(look), limits)
    return [News(look.snapshot.now, "firing", each) for each in found]


def alert_line(news: News) -> str:
    """Write news for people."""
    trouble, time = news.trouble, f"[{news.at.astimezone(UTC):%H:%M:%S}]"
    if news.state == "over":
        return f"{time} over: {trouble.name} ({printable(trouble.about)})"
    return f"{time} ALERT {trouble.name}: {trouble.words} → {trouble.action}"


def alert_json(news: News) -> str:
    """Write news for machines."""
    trouble = news.trouble
    return json.dumps(
        {
            "alert": trouble.name,
            "state": news.state,
            "at": news.at.isoformat(),
            "about": trouble.about,
            "message": trouble.words,
            "action": trouble.action,
        }
    )


@dataclass(frozen=True, slots=True)
class Herald:
    """Tells people or machines what is wrong with a batch."""

    tell: Callable[[str], None]
    as_json: bool
    watchman: Watchman = field(default_factory=Watchman)

    def see(self, look: Look) -> None:
        """Tell what is new since the last look."""
        self._tell(self.watchman.see(look))

    def see_once(self, look: Look) -> None:
        """Tell what is wrong now."""
        self._tell(seen_once(look, self.watchman.limits))

    def say(self, words: str) -> None:
        """Make an alert of what a watcher says of PostgreSQL, whose clock is away as well."""
        state: State = "firing" if words == AWAY else "over"
        self._tell([News(utc_now(), state, POSTGRES)])

    def _tell(self, news: Iterable[News]) -> None:
        for each in news:
            self.tell(alert_json(each) if self.as_json else alert_line(each))
