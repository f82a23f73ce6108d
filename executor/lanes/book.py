"""An executor's dealings with lanes: what it was granted, what it holds, and what it has yet to say.

Settlements travel with the next ask, or by themselves a moment later; bad news travels at once. One ask is
under way at a time, for each says how many permits are held in all.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta

from executor.admission import Admitted
from executor.contract import RateLimited
from executor.lanes.contract import Ask, Grant, LaneLimit, Lanes, LanesUnavailable, Outcome, Settlement
from executor.lanes.permits import LaneUse, Permit, Permits
from executor.lanes.telemetry import LaneTally
from taskqueue.lines import split

Uses = Callable[[str], Awaitable[Sequence[LaneUse]]]
"""Which lanes a line has to ask."""
DeclaredLimits = Mapping[str, Mapping[str, LaneLimit]]
"""Limits that batches declare: by lane, and by origin."""

LINGER = 0.025
"""Seconds for which good news waits for company."""
RENEW = 10.0
"""Seconds after which an executor says again what it holds: a lane forgets whom it does not hear from."""
MOST_LINES = 1_000
MOST_UNSAID = 10_000
"""Settlements kept for a lane that can't be reached; what it never hears of, its leases mend."""


class LaneBook:
    """`Admission` by lanes."""

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
        self._unsaid: dict[str, deque[Settlement]] = defaultdict(lambda: deque(maxlen=MOST_UNSAID))
        self._granted: dict[str, list[dict[str, Permit]]] = defaultdict(list)
        self._lines: dict[str, Sequence[str]] = {}
        """Which lanes each line was last seen to ask."""
        self._reached: dict[str, set[str]] = defaultdict(set)
        """By batch: the lanes on which one of its calls was answered here."""
        self._asking = asyncio.Lock()
        self._news = asyncio.Event()
        self._bad_news = asyncio.Event()
        self._tally = LaneTally()

    @property
    def used(self) -> list[str]:
        """The lanes that were ever asked."""
        return list(self._known)

    # -- before a task is taken

    async def admit(self, turns: Sequence[str]) -> Admitted:
        """Ask every lane concerned, once, and share out what it grants in the order of the turns."""
        uses = {line: await self._uses(line) for line in dict.fromkeys(turns)}
        if not any(uses.values()):
            return Admitted(Counter(turns))
        async with self._asking:
            grants, wanted = await self._grants(turns, uses)
        permits = {lane: self._permits(lane, grant) for lane, grant in grants.items()}
        granted = self._share_out(turns, uses, permits)
        for left in permits.values():
            for permit in left:
                permit.settle(Outcome.UNUSED)
        if len(self._lines) > MOST_LINES:  # of batches long gone
            self._lines.clear()
            self._reached.clear()
        self._lines.update({line: [use.lane for use in each] for line, each in uses.items() if each})
        held_back = {lane: grant.ready_in for lane, grant in grants.items() if grant.granted < wanted[lane]}
        metered = [line for line, each in uses.items() if each]
        return Admitted(granted, dict(self._shut(held_back)), metered)

    async def _grants(
        self, turns: Sequence[str], uses: Mapping[str, Sequence[LaneUse]]
    ) -> tuple[dict[str, Grant], Counter[str]]:
        """Request permits for all turns; of a batch whose calls are limited overall, first that many."""
        overall = {line: [use for use in each if use.is_overall] for line, each in uses.items()}
        wanted = Counter(use.lane for line in turns for use in overall[line])
        grants: dict[str, Grant] = {}
        if wanted:
            grants = await self._ask({use.lane: use for each in overall.values() for use in each}, wanted)
        left = Counter({lane: grant.granted for lane, grant in grants.items()})
        further: Counter[str] = Counter()
        for line in turns:
            if all(left[use.lane] > 0 for use in overall[line]):
                left.subtract(use.lane for use in overall[line])
                further.update(use.lane for use in uses[line] if not use.is_overall)
        others = {use.lane: use for each in uses.values() for use in each if use.lane in further}
        return grants | await self._ask(others, further), wanted + further

    def _shut(self, held_back: Mapping[str, float]) -> Iterator[tuple[str, float]]:
        """Name all lines that a lane holds back, asked or not: they are to open together, and share it."""
        for line, lanes in self._lines.items():
            waits = [held_back[lane] for lane in lanes if lane in held_back]
            if waits:
                yield line, max(waits)

    def _share_out(
        self,
        turns: Sequence[str],
        uses: Mapping[str, Sequence[LaneUse]],
        permits: Mapping[str, deque[Permit]],
    ) -> Counter[str]:
        granted: Counter[str] = Counter()
        for line in turns:
            if all(permits.get(use.lane) for use in uses[line]):
                granted[line] += 1
                if uses[line]:
                    self._granted[line].append(
                        {use.lane: permits[use.lane].popleft() for use in uses[line]}
                    )
        return granted

    def lend(self, line: str) -> Permits:
        """Hand over what was granted for one task of a line."""
        granted = self._granted.get(line)
        reached = self._reached[split(line)[0]]
        return Permits(self, granted.pop() if granted else {}, reached=reached)

    def give_back(self, unused: Mapping[str, int]) -> None:
        """Return what was granted and found no task."""
        for line, number in unused.items():
            for _ in range(min(number, len(self._granted.get(line, ())))):
                self.lend(line).release()

    # -- when something is to be called

    async def permit(self, use: LaneUse) -> Permit:
        """Return leave to call now; raises `RateLimited` where the lane has none."""
        try:
            async with self._asking:
                grants = await self._ask({use.lane: use}, Counter({use.lane: 1}))
        except LanesUnavailable as error:
            raise RateLimited(f"the lane {use.lane} can't be asked: {error}") from error
        grant = grants[use.lane]
        if not grant.granted:
            waits_for = grant.why.value.replace("_", " ") if grant.why else "its turn"
            raise RateLimited(
                f"the lane {use.lane} waits for {waits_for}", retry_after=timedelta(seconds=grant.ready_in)
            )
        return self._permits(use.lane, grant).popleft()

    def _permits(self, lane: str, grant: Grant) -> deque[Permit]:
        self._held[lane] += grant.granted
        now = self._clock()
        return deque(
            Permit(lane, grant.reserved, now, self._settled, self._clock, waited=self._tally.waited(lane))
            for _ in range(grant.granted)
        )

    def _settled(self, permit: Permit, settlement: Settlement) -> None:
        self._held[permit.lane] -= 1
        self._unsaid[permit.lane].append(settlement)
        self._news.set()
        if settlement.outcome is Outcome.RATE_LIMITED:
            self._tally.throttled(permit.lane)
        if settlement.outcome not in {Outcome.OK, Outcome.UNUSED}:
            self._bad_news.set()

    # -- what lanes are told

    async def run(self) -> None:
        """Tell lanes what came of permits, for ever."""
        while True:
            await _heard(self._news, RENEW)
            await _heard(self._bad_news, LINGER)
            self._news.clear()
            self._bad_news.clear()
            try:
                await self.tell()
            except LanesUnavailable:
                await asyncio.sleep(LINGER * 10)  # whoever asks for permits says that they are away

    async def tell(self) -> None:
        """Say all that there is to say."""
        async with self._asking:
            lanes = [lane for lane in self._known if self._unsaid[lane] or self._held[lane]]
            lanes += [lane for lane in self._undeclared() if lane not in lanes]
            await self._ask({lane: self._known.get(lane) or LaneUse(lane) for lane in lanes}, Counter())

    def declare_limits(self) -> None:
        """Send lanes the limits that have changed since they were last sent, a moment from now."""
        if self._undeclared():
            self._news.set()

    def _undeclared(self) -> list[str]:
        """Name the lanes whose limits have changed, or are due to be renewed."""
        limits, now = self._limits(), self._clock()
        return [
            lane
            for lane in limits.keys() | self._declared.keys()
            if limits.get(lane, {}) != self._declared.get(lane, {})
            or now - self._declared_at[lane] >= RENEW
        ]

    async def _ask(self, uses: Mapping[str, LaneUse], wanted: Counter[str]) -> dict[str, Grant]:
        self._known.update(uses)
        limits = {lane: dict(declared) for lane, declared in self._limits().items() if lane in uses}
        said = {lane: list(self._unsaid.pop(lane, ())) for lane in uses}
        asks = [
            Ask(
                lane=lane,
                executor=self._executor,
                held=self._held[lane],
                wanted=wanted[lane],
                estimate=use.estimate,
                policy=use.policy,
                settlements=tuple(said[lane]),
                limits=tuple(limits.get(lane, {}).values()),
                withdrawn=tuple(self._declared.get(lane, {}).keys() - limits.get(lane, {}).keys()),
            )
            for lane, use in uses.items()
        ]
        try:
            grants = dict(zip(uses, await self._lanes.ask(asks), strict=True)) if asks else {}
        except LanesUnavailable:
            self._keep(said.items())
            raise
        now = self._clock()
        self._note_declared({lane: limits.get(lane, {}) for lane in uses}, now)
        for lane, grant in grants.items():
            if wanted[lane]:
                self._tally.heard(lane, grant, now)
        return grants

    def _note_declared(self, limits: DeclaredLimits, now: float) -> None:
        for lane, declared in limits.items():
            if declared:
                self._declared[lane], self._declared_at[lane] = declared, now
            else:
                self._declared.pop(lane, None)

    def _keep(self, said: Iterable[tuple[str, Sequence[Settlement]]]) -> None:
        """Say it again next time."""
        for lane, settlements in said:
            self._unsaid[lane].extendleft(reversed(settlements))


async def _heard(news: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return
