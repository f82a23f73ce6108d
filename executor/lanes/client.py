"""The executor's client of lanes: permits granted, permits held, and settlements not sent yet.

A settlement is sent with the next request, or by itself within `LINGER`; a failure is sent at once. One
request is in flight at a time, because each carries the total number of permits held.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from executor.admission import Admitted
from executor.contract import RateLimited
from executor.lanes.contract import (
    AcquireRequest,
    CallOutcome,
    Grant,
    LaneLimit,
    Lanes,
    LanesUnavailable,
    Settlement,
)
from executor.lanes.permits import LaneUse, Permit, Permits
from executor.lanes.telemetry import LaneMetrics
from taskqueue.queue_layout import split_queue

Uses = Callable[[str], Awaitable[Sequence[LaneUse]]]
"""Returns the lanes that the tasks of a queue need permits from."""
DeclaredLimits = Mapping[str, Mapping[str, LaneLimit]]
"""Limits that batches declare: by lane, and by origin."""

LINGER = 0.025
"""Seconds for which a success waits for other settlements."""
RENEW = 10.0
"""Seconds between renewals of an executor's leases, which otherwise expire."""
MAX_QUEUES = 1_000
MAX_UNSENT = 10_000
"""Settlements kept for a lane that can't be reached; permits of dropped ones expire with their lease."""


class LaneClient:
    """`Admission` by permits of lanes."""

    def __init__(
        self,
        lanes: Lanes,
        uses: Uses,
        *,
        executor: str,
        limits: Callable[[], DeclaredLimits] = dict,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._lanes = lanes
        self._uses = uses
        self._limits = limits
        self._executor = executor
        self._clock = clock or asyncio.get_running_loop().time
        self._held: Counter[str] = Counter()
        self._known: dict[str, LaneUse] = {}
        self._declared: dict[str, Mapping[str, LaneLimit]] = {}
        """The limits that each lane was last sent, by origin."""
        self._declared_at: dict[str, float] = {}
        self._unsent: dict[str, deque[Settlement]] = defaultdict(lambda: deque(maxlen=MAX_UNSENT))
        self._granted: dict[str, list[dict[str, Permit]]] = defaultdict(list)
        self._queues: dict[str, Sequence[str]] = {}
        """The lanes that each queue last needed permits from."""
        self._reached: dict[str, set[str]] = defaultdict(set)
        """By batch: the lanes on which the provider has responded to one of its calls."""
        self._request_lock = asyncio.Lock()
        self._has_unsent = asyncio.Event()
        self._has_failures = asyncio.Event()
        self._metrics = LaneMetrics()

    @property
    def used(self) -> list[str]:
        """The lanes that requests were sent to."""
        return list(self._known)

    # -- before a task is fetched

    async def admit(self, turns: Sequence[str]) -> Admitted:
        """Send one request to each lane concerned, and assign the permits in the order of the turns."""
        uses = {queue: await self._uses(queue) for queue in dict.fromkeys(turns)}
        if not any(uses.values()):
            return Admitted(Counter(turns))
        async with self._request_lock:
            grants, wanted = await self._grants(turns, uses)
        permits = {lane: self._permits(lane, grant) for lane, grant in grants.items()}
        granted = self._assign(turns, uses, permits)
        for unassigned in permits.values():
            for permit in unassigned:
                permit.settle(CallOutcome.UNUSED)
        if len(self._queues) > MAX_QUEUES:  # of batches long gone
            self._queues.clear()
            self._reached.clear()
        self._queues.update({queue: [use.lane for use in each] for queue, each in uses.items() if each})
        throttled = {lane: grant.ready_in for lane, grant in grants.items() if grant.granted < wanted[lane]}
        metered = [queue for queue, each in uses.items() if each]
        return Admitted(granted, dict(self._throttled(throttled)), metered)

    async def _grants(
        self, turns: Sequence[str], uses: Mapping[str, Sequence[LaneUse]]
    ) -> tuple[dict[str, Grant], Counter[str]]:
        """Request permits for all turns: those of `is_overall` lanes first, which bound the others."""
        overall = {queue: [use for use in each if use.is_overall] for queue, each in uses.items()}
        wanted = Counter(use.lane for queue in turns for use in overall[queue])
        grants: dict[str, Grant] = {}
        if wanted:
            grants = await self._request(
                {use.lane: use for each in overall.values() for use in each}, wanted
            )
        left = Counter({lane: grant.granted for lane, grant in grants.items()})
        specific: Counter[str] = Counter()
        for queue in turns:
            if all(left[use.lane] > 0 for use in overall[queue]):
                left.subtract(use.lane for use in overall[queue])
                specific.update(use.lane for use in uses[queue] if not use.is_overall)
        others = {use.lane: use for each in uses.values() for use in each if use.lane in specific}
        return grants | await self._request(others, specific), wanted + specific

    def _throttled(self, throttled: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """List all queues of throttled lanes, requested or not, so that they become ready together."""
        for queue, lanes in self._queues.items():
            waits = [throttled[lane] for lane in lanes if lane in throttled]
            if waits:
                yield queue, max(waits)

    def _assign(
        self,
        turns: Sequence[str],
        uses: Mapping[str, Sequence[LaneUse]],
        permits: Mapping[str, deque[Permit]],
    ) -> Counter[str]:
        granted: Counter[str] = Counter()
        for queue in turns:
            if all(permits.get(use.lane) for use in uses[queue]):
                granted[queue] += 1
                if uses[queue]:
                    self._granted[queue].append(
                        {use.lane: permits[use.lane].popleft() for use in uses[queue]}
                    )
        return granted

    def take_permits(self, queue: str) -> Permits:
        """Return the permits granted for one task of a queue."""
        granted = self._granted.get(queue)
        reached = self._reached[split_queue(queue)[0]]
        return Permits(self, granted.pop() if granted else {}, reached=reached)

    def return_unused(self, unused: Mapping[str, int]) -> None:
        """Release permits for which the queue had no task."""
        for queue, number in unused.items():
            for _ in range(min(number, len(self._granted.get(queue, ())))):
                self.take_permits(queue).release()

    # -- before a call

    async def permit(self, use: LaneUse) -> Permit:
        """Acquire a permit for one call; raises `RateLimited` if the lane grants none."""
        try:
            async with self._request_lock:
                grants = await self._request({use.lane: use}, Counter({use.lane: 1}))
        except LanesUnavailable as error:
            raise RateLimited(f"lane {use.lane} is unavailable: {error}") from error
        grant = grants[use.lane]
        if not grant.granted:
            limit = grant.blocked_by.value.replace("_", " ") if grant.blocked_by else "rate"
            raise RateLimited(
                f"lane {use.lane} is blocked by {limit}", retry_after=timedelta(seconds=grant.ready_in)
            )
        return self._permits(use.lane, grant).popleft()

    def _permits(self, lane: str, grant: Grant) -> deque[Permit]:
        self._held[lane] += grant.granted
        now = self._clock()
        return deque(
            Permit(lane, grant.reserved, now, self._settled, self._clock, waited=self._metrics.waited(lane))
            for _ in range(grant.granted)
        )

    def _settled(self, permit: Permit, settlement: Settlement) -> None:
        self._held[permit.lane] -= 1
        self._unsent[permit.lane].append(settlement)
        self._has_unsent.set()
        if settlement.outcome is CallOutcome.RATE_LIMITED:
            self._metrics.throttled(permit.lane)
        if settlement.outcome not in {CallOutcome.OK, CallOutcome.UNUSED}:
            self._has_failures.set()

    # -- settlements and renewals

    async def run(self) -> None:
        """Send settlements and renew leases until cancelled."""
        while True:
            await _wait(self._has_unsent, RENEW)
            await _wait(self._has_failures, LINGER)
            self._has_unsent.clear()
            self._has_failures.clear()
            try:
                await self.flush()
            except LanesUnavailable:
                await asyncio.sleep(LINGER * 10)  # requests for permits report the outage

    async def flush(self) -> None:
        """Send all unsent settlements, held permits and changed limits."""
        async with self._request_lock:
            lanes = [lane for lane in self._known if self._unsent[lane] or self._held[lane]]
            lanes += [lane for lane in self._undeclared() if lane not in lanes]
            await self._request({lane: self._known.get(lane) or LaneUse(lane) for lane in lanes}, Counter())

    def declare_limits(self) -> None:
        """Schedule a request to the lanes whose limits have changed since they were last sent."""
        if self._undeclared():
            self._has_unsent.set()

    def _undeclared(self) -> list[str]:
        """List the lanes whose limits have changed, or are due to be renewed."""
        limits, now = self._limits(), self._clock()
        return [
            lane
            for lane in limits.keys() | self._declared.keys()
            if limits.get(lane, {}) != self._declared.get(lane, {})
            or now - self._declared_at[lane] >= RENEW
        ]

    async def _request(self, uses: Mapping[str, LaneUse], wanted: Counter[str]) -> dict[str, Grant]:
        self._known.update(uses)
        limits = {lane: dict(declared) for lane, declared in self._limits().items() if lane in uses}
        settlements = {lane: list(self._unsent.pop(lane, ())) for lane in uses}
        requests = [
            AcquireRequest(
                lane=lane,
                executor=self._executor,
                held=self._held[lane],
                wanted=wanted[lane],
                estimate=use.estimate,
                policy=use.policy,
                settlements=tuple(settlements[lane]),
                limits=tuple(limits.get(lane, {}).values()),
                withdrawn=tuple(self._declared.get(lane, {}).keys() - limits.get(lane, {}).keys()),
            )
            for lane, use in uses.items()
        ]
        try:
            grants = dict(zip(uses, await self._lanes.acquire(requests), strict=True)) if requests else {}
        except LanesUnavailable:
            self._requeue(settlements.items())
            raise
        now = self._clock()
        self._record_declared({lane: limits.get(lane, {}) for lane in uses}, now)
        for lane, grant in grants.items():
            if wanted[lane]:
                self._metrics.record(lane, grant, now)
        return grants

    def _record_declared(self, limits: DeclaredLimits, now: float) -> None:
        for lane, declared in limits.items():
            if declared:
                self._declared[lane], self._declared_at[lane] = declared, now
            else:
                self._declared.pop(lane, None)

    def _requeue(self, unsent: Iterable[tuple[str, Sequence[Settlement]]]) -> None:
        """Put settlements back that were not delivered."""
        for lane, settlements in unsent:
            self._unsent[lane].extendleft(reversed(settlements))


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
