"""What lanes tell of themselves; `docs/reference/telemetry.md` has the names."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic

from opentelemetry.metrics import CallbackOptions, Observation, get_meter

from executor.lanes.contract import Grant, Lanes, LanesUnavailable, LaneView, Why

LOOK = 2.0
"""Seconds between two looks at lanes."""
INTEREST = 120.0
"""Seconds for which somebody who has asked is taken to ask again."""
WAIT_MS = (1, 10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000)
BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}
KEEPS_ALL_BACK = frozenset({Why.RETRY_AFTER, Why.BREAKER})

_meter = get_meter("executor.lanes")
_acquired = _meter.create_counter("eval_rate_limit_acquired_total", description="Permits granted")
_refused = _meter.create_counter("eval_rate_limit_refused_total", description="Asks that got nothing")
_throttled = _meter.create_counter(
    "eval_rate_limit_throttled_total", description="Calls that the provider refused as too many"
)
_wait = _meter.create_histogram(
    "eval_rate_limit_wait_ms",
    description="How long a lane had nothing for this executor before the next permit",
    explicit_bucket_boundaries_advisory=WAIT_MS,
)


class LaneTally:
    """What one executor has heard of lanes."""

    def __init__(self) -> None:
        self._short_since: dict[str, float] = {}
        self._waited: dict[str, float] = {}

    def heard(self, lane: str, grant: Grant, now: float) -> None:
        """Count what a lane said to somebody who wanted something."""
        if not grant.granted:
            self._short_since.setdefault(lane, now)
            _refused.add(1, {"lane": lane, "why": str(grant.why or Why.RATE)})
            return
        self._waited[lane] = waited = now - self._short_since.pop(lane, now)
        labels = {"lane": lane}
        _acquired.add(grant.granted, labels)
        _throttled.add(0, labels)
        _wait.record(waited * 1000, labels)

    def waited(self, lane: str) -> float:
        """Say for how many seconds the lane had nothing before what it granted last."""
        return self._waited.get(lane, 0.0)

    def throttled(self, lane: str) -> None:
        """Count a call that the other side refused as too many."""
        _throttled.add(1, {"lane": lane})


class LaneWatch:
    """Looks at the lanes an executor uses, for as long as somebody asks how they stand."""

    def __init__(
        self, lanes: Lanes, used: Callable[[], Iterable[str]], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self.views: tuple[LaneView, ...] = ()
        self._lanes = lanes
        self._used = used
        self._clock = clock
        self._asked_at = float("-inf")

    def asked(self) -> tuple[LaneView, ...]:
        """Say how lanes stood at the last look."""
        self._asked_at = self._clock()
        return self.views

    async def run(self) -> None:
        """Look, for ever."""
        with _watching(self):
            while True:
                await self.look()
                await asyncio.sleep(LOOK)

    async def look(self) -> None:
        """Look once, if anybody wants to know."""
        names = list(self._used())
        if not names or self._clock() - self._asked_at > INTEREST:
            return
        try:
            self.views = tuple(await self._lanes.views(names))
        except LanesUnavailable:
            self.views = ()


_watches: set[LaneWatch] = set()


@contextmanager
def _watching(watch: LaneWatch) -> Iterator[None]:
    _watches.add(watch)
    try:
        yield
    finally:
        _watches.discard(watch)


Reading = Callable[[LaneView], float | None]


def _gauge(name: str, read: Reading, description: str) -> None:
    def observe(_options: CallbackOptions) -> Iterable[Observation]:
        for watch in list(_watches):
            for view in watch.asked():
                if (value := read(view)) is not None:
                    yield Observation(value, {"lane": view.lane})

    _meter.create_observable_gauge(name, [observe], description=description)


_gauge("eval_lane_open", lambda view: int(view.why not in KEEPS_ALL_BACK), "1 while permits are to be had")
_gauge("eval_lane_in_flight", lambda view: view.in_flight, "Calls under way, of the whole fleet")
_gauge("eval_lane_concurrency_limit", lambda view: view.concurrency, "What the controller allows at a time")
_gauge("eval_lane_rpm_limit", lambda view: view.rpm, "Calls a minute, given or learnt")
_gauge("eval_lane_tpm_limit", lambda view: view.tpm, "Tokens a minute, given or learnt")
_gauge(
    "eval_lane_breaker_state",
    lambda view: BREAKER_STATES.get(view.breaker),
    "0 closed, 1 half open, 2 open",
)
