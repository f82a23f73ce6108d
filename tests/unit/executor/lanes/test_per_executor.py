"""Lanes of one executor, which uses its share of the fleet's limit."""

import pytest

from executor.lanes.contract import AcquireRequest, CallOutcome, LanePolicy, Settlement
from executor.lanes.memory import MemoryLanes
from executor.lanes.per_executor import PerExecutorLanes
from providers.limits import Headroom, RateLimits
from tests.unit.executor.lanes.simulated_fleet import START

POLICY = LanePolicy(rpm=600, tpm=60_000, max_concurrency=10, gap=0.5)


class Worker:
    def __init__(self) -> None:
        self.alive = 4
        self.lanes = PerExecutorLanes(MemoryLanes(lambda: START), lambda: self.alive)

    async def view(self, ask: AcquireRequest):
        await self.lanes.acquire([ask])
        (view,) = await self.lanes.views(["one"])
        return view


async def test_each_takes_its_part_and_more_when_others_go():
    """It is a quarter with four executors; all of it when alone, or when even itself is not registered."""
    worker = Worker()
    view = await worker.view(AcquireRequest("one", "a", 0, 1, policy=POLICY))
    assert (view.rpm, view.tpm) == (150, 15_000)
    for worker.alive in (1, 0):
        assert (await worker.view(AcquireRequest("one", "a", 0, 1, policy=POLICY))).rpm == 600


async def test_an_advertised_limit_is_divided_among_executors():
    """The limit of an account is divided, whether the policy or a header gives it."""
    limits = RateLimits(Headroom(1_000, 800), Headroom(None, None))
    settled = AcquireRequest(
        "one",
        "a",
        0,
        1,
        settlements=(Settlement(CallOutcome.OK, limits=limits), Settlement(CallOutcome.OK)),
    )
    assert (await Worker().view(settled)).rpm == 250


async def test_one_call_at_a_time_stays_one_for_each():
    """No limit is divided below one."""
    worker = Worker()
    (grant,) = await worker.lanes.acquire(
        [AcquireRequest("one", "a", 0, 9, policy=LanePolicy(max_concurrency=2))]
    )
    assert grant.granted == 1


async def test_a_gap_is_as_many_times_as_long():
    """Together all executors keep the gap."""
    worker = Worker()
    (grant,) = await worker.lanes.acquire([AcquireRequest("one", "a", 0, 1, policy=LanePolicy(gap=0.4))])
    assert grant.ready_in == pytest.approx(1.6)
