"""The contract of lanes, in memory and on Redis."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from redis.asyncio import Redis

from eventlog.redis_streams import connect
from executor.lanes.contract import (
    AcquireRequest,
    BlockedBy,
    CallOutcome,
    Grant,
    LaneLimit,
    LanePolicy,
    Lanes,
    LanesUnavailable,
    LaneView,
    Settlement,
)
from executor.lanes.memory import MemoryLanes
from executor.lanes.redis_lanes import TTL, RedisLanes, lane_key

PACED = LanePolicy(rpm=600)
OK = Settlement(CallOutcome.OK)


@dataclass
class Form:
    """Lanes of one implementation, and their clock."""

    redis: Redis | None = None
    now: float = 1_700_000_000.0
    lanes: Lanes = field(init=False)

    def __post_init__(self) -> None:
        self.lanes = self.another()

    def another(self) -> Lanes:
        """Return the same lanes, as another executor sees them."""
        if self.redis:
            return RedisLanes(self.redis, now=lambda: self.now)
        return getattr(self, "lanes", MemoryLanes(lambda: self.now))

    async def lose_everything(self) -> None:
        if self.redis:
            await self.redis.flushall()
        else:
            self.lanes = MemoryLanes(lambda: self.now)

    async def acquire(self, wanted: int, *settlements: Settlement, held: int = 0, **fields: Any) -> Grant:
        request = AcquireRequest("one", "a", held, wanted, settlements=settlements)
        (grant,) = await self.lanes.acquire([replace(request, **fields)])
        return grant

    async def view(self, lane: str = "one") -> LaneView:
        (view,) = await self.lanes.views([lane])
        return view


@pytest.fixture(params=["memory", "redis"])
async def form(request: pytest.FixtureRequest) -> AsyncIterator[Form]:
    if request.param == "memory":
        yield Form()
        return
    redis = connect(request.getfixturevalue("redis_url"))
    yield Form(redis)
    await redis.aclose()


async def test_an_unused_lane_has_the_default_view(form):
    """A lane without requests is listed without limits and without use."""
    assert await form.view() == LaneView("one")
    assert await form.lanes.acquire([]) == []
    assert await form.lanes.views([]) == []


async def test_a_lane_starts_empty_and_is_paced(form):
    """The first call waits for one interval, and at most a quarter of a second of credit accumulates."""
    assert (await form.acquire(5, policy=PACED)).granted == 0
    form.now += 0.125
    assert (await form.acquire(5, policy=PACED)).granted == 1
    form.now += 60
    assert await form.acquire(5, held=1, policy=PACED) == Grant(3, 0.0, BlockedBy.RATE, 0.1)
    assert (await form.view()).granted == 4


async def test_a_lane_starts_empty_again_after_data_loss(form):
    """The next requests restore it, since they report the permits that are held."""
    await form.acquire(8)
    await form.lose_everything()
    assert (await form.acquire(5, held=6)).granted == 2
    assert (await form.acquire(5, lane="two", policy=PACED)).granted == 0


async def test_executors_share_a_lane(form):
    """A held permit is unavailable to others until it is settled or its holder was silent for a minute."""
    other = form.another()
    assert (await form.acquire(8)).granted == 8
    assert (await other.acquire([AcquireRequest("one", "b", 0, 1)]))[0] == Grant(
        0, 0.0, BlockedBy.CONCURRENCY, 0.05
    )
    await form.acquire(0, OK, held=7)
    assert (await other.acquire([AcquireRequest("one", "b", 0, 1)]))[0].granted == 1
    assert (await form.view()).in_flight == 8
    form.now += 61
    assert (await form.view()).in_flight == 0


async def test_lanes_are_independent(form):
    """In one call one lane is blocked, one has an open breaker, and the third grants."""
    blocked = Settlement(CallOutcome.RATE_LIMITED, retry_after=30.0)
    broken = (Settlement(CallOutcome.FAILED),) * 5
    requests = [
        AcquireRequest("one", "a", 0, 1, settlements=(blocked,)),
        AcquireRequest("two", "a", 0, 1, settlements=broken),
        AcquireRequest("three", "a", 0, 1),
    ]
    grants = await form.lanes.acquire(requests)
    assert [(grant.granted, grant.blocked_by) for grant in grants] == [
        (0, BlockedBy.RETRY_AFTER),
        (0, BlockedBy.BREAKER),
        (1, None),
    ]
    views = await form.lanes.views(["three", "two", "one"])
    assert [view.lane for view in views] == ["three", "two", "one"]
    assert [view.blocked_by for view in views] == [None, BlockedBy.BREAKER, BlockedBy.RETRY_AFTER]
    assert [view.until for view in views] == [None, form.now + 30, form.now + 30]


async def test_an_open_breaker_is_probed_by_one_call_of_the_fleet(form):
    """Other executors poll again later; the success of the probe closes the breaker for all."""
    other = form.another()
    await form.acquire(0, *[Settlement(CallOutcome.FAILED)] * 5)
    form.now += 30
    assert await form.acquire(5) == Grant(1, 0.0, BlockedBy.BREAKER, 1.0)
    assert (await other.acquire([AcquireRequest("one", "b", 0, 5)]))[0] == Grant(
        0, 0.0, BlockedBy.BREAKER, 1.0
    )
    await form.acquire(0, OK)
    assert (await other.acquire([AcquireRequest("one", "b", 0, 5)]))[0].granted == 5


async def test_tokens_are_reserved_and_settled(form):
    """The actual use of a call is learnt, and the next estimate uses it."""
    policy = LanePolicy(tpm=60_000)
    await form.acquire(1, policy=policy, estimate=500.0)
    form.now += 1
    assert (await form.acquire(1, policy=policy, estimate=500.0)).reserved == 500
    used = Settlement(CallOutcome.OK, reserved=500.0, tokens=2_000.0)
    grant = await form.acquire(1, used, policy=policy)
    assert (grant.reserved, grant.blocked_by, grant.ready_in) == (
        2_000,
        BlockedBy.TOKENS,
        pytest.approx(1.75),
    )
    assert (await form.view()).tokens_per_call == 2_000


async def test_memory_and_redis_give_the_same_view(form):
    """Every number of a view is equal in both implementations."""
    await form.acquire(20, policy=LanePolicy(max_concurrency=5))
    form.now += 1
    await form.acquire(3, Settlement(CallOutcome.RATE_LIMITED, age=0.5, retry_after=2.5), OK, held=3)
    assert await form.view() == LaneView(
        "one",
        blocked_by=BlockedBy.RETRY_AFTER,
        since=form.now,
        until=form.now + 2.5,
        in_flight=3,
        concurrency=4.25,
        granted=5,
        rate_limited=1,
        message="Retry-After for 2 s more",
    )


async def test_settlements_of_an_outage_are_reported_in_one_call(form):
    """Any number is accepted, and each counts once."""
    refused = Settlement(CallOutcome.RATE_LIMITED, age=5.0, retry_after=60.0)
    for number in (199, 200, 201, 1_000):
        await form.acquire(3, *[refused] * number, lane=f"lane-{number}")
        view = await form.view(f"lane-{number}")
        assert (view.rate_limited, view.concurrency, view.granted) == (number, 4, 0)


async def test_a_limit_declared_by_one_batch_binds_all_until_it_is_withdrawn(form):
    """Another executor without a limit of its own keeps to it, and the view names its origin."""
    other, strict = form.another(), LaneLimit("batch-a limits", rpm=60.0, max_concurrency=3)
    await form.acquire(0, limits=(strict,))
    form.now += 10
    assert (await other.acquire([AcquireRequest("one", "b", 0, 5)]))[0].granted == 1
    form.now += 0.5
    assert (await other.acquire([AcquireRequest("one", "b", 1, 5)]))[0].blocked_by is BlockedBy.RATE
    assert (await form.view()).limits == (strict,)
    await form.acquire(0, withdrawn=(strict.origin,))
    assert (await other.acquire([AcquireRequest("one", "b", 1, 5)]))[0].granted == 5
    assert (await form.view()).limits == ()


async def test_the_strictest_limit_of_each_kind_holds_until_it_expires(form):
    """One is renewed, the other expires after a minute, and unused capacity is not accumulated."""
    rate, flight = LaneLimit("a limits", rpm=60.0), LaneLimit("b targets.x", rpm=6_000.0, max_concurrency=9)
    await form.acquire(0, limits=(rate, flight))
    form.now += 55
    assert (await form.acquire(20, limits=(flight,))).granted == 1
    form.now += 5
    assert await form.acquire(20, held=1) == Grant(8, 0.0, BlockedBy.CONCURRENCY, 0.05)
    assert (await form.view()).limits == (flight,)


# Redis itself.


async def test_redis_uses_the_clock_of_the_server(redis_url):
    """Executors send no time, and an unused lane expires after a day."""
    redis = connect(redis_url)
    lanes = RedisLanes(redis)
    await lanes.acquire(
        [AcquireRequest("one", "a", 0, 1, settlements=(Settlement(CallOutcome.FAILED, retry_after=600.0),))]
    )
    (seconds, _), (view,) = await redis.time(), await lanes.views(["one"])
    assert view.until == pytest.approx(seconds + 600, abs=60)
    assert 0 < await redis.ttl(lane_key("one")) <= TTL
    await redis.aclose()


async def test_a_lost_lane_script_is_loaded_again(redis_url):
    """A restart of Redis has the same effect."""
    redis = connect(redis_url)
    lanes = RedisLanes(redis)
    await lanes.acquire([AcquireRequest("one", "a", 0, 1)])
    await redis.script_flush()
    assert [
        grant.granted
        for grant in await lanes.acquire(
            [AcquireRequest("one", "a", 1, 1), AcquireRequest("two", "a", 0, 1)]
        )
    ] == [
        1,
        1,
    ]
    await redis.aclose()


async def test_unreachable_lanes_are_reported(tmp_path):
    """The caller waits and retries."""
    redis = connect(f"unix://{tmp_path}/absent.sock")
    with pytest.raises(LanesUnavailable):
        await RedisLanes(redis).acquire([AcquireRequest("one", "a", 0, 1)])
    with pytest.raises(LanesUnavailable):
        await RedisLanes(redis).views(["one"])
    await redis.aclose()
