"""Metrics of lanes; `docs/reference/telemetry.md` lists the names."""

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic

from opentelemetry.metrics import Observation, get_meter

from eventlog.gauges import GaugeSet
from executor.lanes.contract import BlockedBy, Grant, Lanes, LanesUnavailable, LaneView

POLL = 2.0
"""Seconds between two reads of the lanes' state."""
READER_TTL = 120.0
"""Seconds after the last read of the views from which the monitor stops polling."""
WAIT_MS = (1, 10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000, 900_000)
BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}
BLOCKS_ALL = frozenset({BlockedBy.RETRY_AFTER, BlockedBy.BREAKER})

_meter = get_meter("executor.lanes")
_acquired = _meter.create_counter("eval_rate_limit_acquired_total", description="Permits granted")
_refused = _meter.create_counter(
    "eval_rate_limit_refused_total", description="Requests that were granted no permit"
)
_throttled = _meter.create_counter(
    "eval_rate_limit_throttled_total", description="Calls that the provider answered with 429"
)
_wait = _meter.create_histogram(
    "eval_rate_limit_wait_ms",
    description="Time without a permit for this executor before the next grant",
    explicit_bucket_boundaries_advisory=WAIT_MS,
)


class LaneMetrics:
    """Counters of one executor's requests to lanes."""

    def __init__(self) -> None:
        self._short_since: dict[str, float] = {}
        self._waited: dict[str, float] = {}

    def record(self, lane: str, grant: Grant, now: float) -> None:
        """Count the response to a request for permits."""
        if not grant.granted:
            self._short_since.setdefault(lane, now)
            _refused.add(1, {"lane": lane, "why": str(grant.blocked_by or BlockedBy.RATE)})
            return
        self._waited[lane] = waited = now - self._short_since.pop(lane, now)
        labels = {"lane": lane}
        _acquired.add(grant.granted, labels)
        _throttled.add(0, labels)
        _wait.record(waited * 1000, labels)

    def waited(self, lane: str) -> float:
        """Return for how many seconds the lane granted no permit before its last grant."""
        return self._waited.get(lane, 0.0)

    def throttled(self, lane: str) -> None:
        """Count a call that the provider answered with 429."""
        _throttled.add(1, {"lane": lane})


class LaneMonitor:
    """Polls the state of the lanes that an executor uses, while its views are being read."""

    def __init__(
        self, lanes: Lanes, used: Callable[[], Iterable[str]], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self.views: tuple[LaneView, ...] = ()
        self._lanes = lanes
        self._used = used
        self._clock = clock
        self._read_at = float("-inf")

    def read(self) -> tuple[LaneView, ...]:
        """Return the state of lanes at the last poll."""
        self._read_at = self._clock()
        return self.views

    async def run(self) -> None:
        """Poll until cancelled."""
        with _gauges.registered(self):
            while True:
                await self.poll()
                await asyncio.sleep(POLL)

    async def poll(self) -> None:
        """Poll once, if the views have been read recently."""
        names = list(self._used())
        if not names or self._clock() - self._read_at > READER_TTL:
            return
        try:
            self.views = tuple(await self._lanes.views(names))
        except LanesUnavailable:
            self.views = ()


_gauges: GaugeSet[LaneMonitor] = GaugeSet("executor.lanes")
Reading = Callable[[LaneView], float | None]


def _gauge(name: str, read: Reading, description: str) -> None:
    def observe(monitor: LaneMonitor) -> Iterable[Observation]:
        for view in monitor.read():
            if (value := read(view)) is not None:
                yield Observation(value, {"lane": view.lane})

    _gauges.gauge(name, description, observe)


_gauge(
    "eval_lane_open", lambda view: int(view.blocked_by not in BLOCKS_ALL), "1 while permits can be granted"
)
_gauge("eval_lane_in_flight", lambda view: view.in_flight, "Calls in flight, of all executors")
_gauge(
    "eval_lane_concurrency_limit", lambda view: view.concurrency, "Concurrency limit of the AIMD controller"
)
_gauge(
    "eval_lane_rpm_limit", lambda view: view.rpm, "Requests per minute, configured, advertised or learnt"
)
_gauge("eval_lane_tpm_limit", lambda view: view.tpm, "Tokens per minute, configured or advertised")
_gauge(
    "eval_lane_breaker_state",
    lambda view: BREAKER_STATES.get(view.breaker),
    "Circuit breaker: 0 closed, 1 half open, 2 open",
)
