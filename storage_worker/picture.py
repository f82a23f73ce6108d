"""How things stand with a storage worker, for whoever collects metrics: asked, not told."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import time

from opentelemetry.metrics import CallbackOptions, Observation, get_meter

from eventlog.timeline import arrival_ms
from storage_worker.sighting import Resolution

REDIS, POSTGRES = "redis", "postgres"
MAX_GAPS = 10_000
FORGOTTEN_AFTER = 60.0
"""Seconds after which a gap that nobody looked at again is another worker's: each sweep looks at all."""
LULL = 15.0
"""Seconds without a wake-up after which there is no lag to speak of."""


class Picture:
    """What a storage worker has seen last."""

    def __init__(self, clock: Callable[[], float], is_hurried: Callable[[], bool]) -> None:
        self._clock = clock
        self.is_hurried = is_hurried
        self.gaps: dict[str, tuple[int, float]] = {}
        """Evaluations with a gap: since when, on the log's clock, and when that was seen."""
        self.backlog: int | None = None
        self.up: dict[str, int] = {}
        self._ahead_ms = time() * 1000 - clock() * 1000
        self._held: dict[object, int] = {}
        self._last: tuple[float, float] = (0.0, -LULL)
        """The lag of the wake-ups that were finished last, and when that was."""

    def tell_time(self, now_ms: int) -> None:
        """Take the log's time; until then the host's will have to do."""
        self._ahead_ms = now_ms - self._clock() * 1000

    def reached(self, *dependencies: str) -> None:
        """Note servers that have answered."""
        self.up.update(dict.fromkeys(dependencies, 1))

    def missed(self, dependency: str) -> None:
        """Note a server that has not."""
        self.up[dependency] = 0

    def look_at_gaps(self, resolutions: Sequence[Resolution]) -> None:
        """Take in what a pass has found."""
        now = self._clock()
        for resolution in resolutions:
            if (change := resolution.change) is None:
                continue
            if self.gaps:
                self.gaps.pop(change.evaluation_id, None)
            if resolution.gap and len(self.gaps) < MAX_GAPS:
                self.gaps[change.evaluation_id] = (resolution.gap.since_ms, now)

    def gaps_now(self) -> list[int]:
        """Say since when the gaps that are still known have been open."""
        since = self._clock() - FORGOTTEN_AFTER
        self.gaps = {key: gap for key, gap in self.gaps.items() if gap[1] >= since}
        return [opened for opened, _ in self.gaps.values()]

    @contextmanager
    def in_hand(self, entry_ids: Iterable[bytes]) -> Iterator[None]:
        """Hold wake-ups until the block is over: while that lasts, their age is the lag."""
        token, oldest = object(), min(map(arrival_ms, entry_ids), default=0)
        self._held[token], lag = oldest, self._age(oldest)
        try:
            yield
        finally:
            del self._held[token]
            self._last = lag, self._clock()

    def lag(self) -> float:
        """Say how old the oldest wake-up in hand is, or was when it was read."""
        if self._held:
            return self._age(min(self._held.values()))
        lag, at = self._last
        return lag if self._clock() - at < LULL else 0.0

    def gap_age(self) -> float:
        """Say how old the oldest gap is."""
        return self._age(min(opened)) if (opened := self.gaps_now()) else 0.0

    def _age(self, since_ms: int) -> float:
        return max(0.0, self._clock() + (self._ahead_ms - since_ms) / 1000)


_shown: list[Picture] = []


@contextmanager
def shown(picture: Picture) -> Iterator[None]:
    """Let metrics show a picture while the block lasts."""
    _shown.append(picture)
    try:
        yield
    finally:
        _shown.remove(picture)


def _show(name: str, description: str, read: Callable[[Picture], Iterable[Observation]]) -> None:
    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        return [seen for picture in _shown for seen in read(picture)]

    _meter.create_observable_gauge(name, [observe], description=description)


def _backlog(picture: Picture) -> list[Observation]:
    return [] if picture.backlog is None else [Observation(picture.backlog)]


def _up(picture: Picture) -> list[Observation]:
    return [Observation(up, {"dependency": name}) for name, up in picture.up.items()]


_meter = get_meter("scoreline.storage_worker")
_show("eval_storage_gaps_open", "Evaluations with a gap", lambda p: [Observation(len(p.gaps_now()))])
_show("eval_storage_gap_age_seconds", "Age of the oldest gap", lambda p: [Observation(p.gap_age())])
_show("eval_storage_lag_seconds", "Age of the oldest wake-up in hand", lambda p: [Observation(p.lag())])
_show("eval_storage_backlog", "Wake-ups not yet acknowledged", _backlog)
_show(
    "eval_storage_degraded",
    "1 while order is not waited for",
    lambda p: [Observation(int(p.is_hurried()))],
)
_show("eval_dependency_up", "1 if the last try got through", _up)
