"""Permits: each is settled once, with the outcome of its call."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from executor.contract import NeverReached, NoConnection, Overloaded, Permanent, RateLimited, Unreachable
from executor.lanes.contract import CallOutcome, Settlement
from executor.lanes.permits import CallUsage, LaneUse, Permit, Permits
from executor.outcome import TargetTimedOut
from providers.limits import Headroom, RateLimits
from tests.unit.executor.harness import raising

USE = LaneUse("lane")
LIMITS = RateLimits(requests=Headroom(limit=10))


class Source:
    """Grants every permit at 10 s, and keeps the settlements; its clock shows 12 s."""

    def __init__(self) -> None:
        self.settled: list[Settlement] = []

    def grant(self) -> Permit:
        return Permit("lane", 5.0, 10.0, lambda _permit, made: self.settled.append(made), lambda: 12.0)

    async def permit(self, _use: LaneUse) -> Permit:
        return self.grant()

    @property
    def outcomes(self) -> list[CallOutcome]:
        return [each.outcome for each in self.settled]


async def answer() -> str:
    return "4"


def failing(error: BaseException) -> Callable[[], Awaitable[str]]:
    return lambda: raising(error)(None)


def used(_answer: str) -> CallUsage:
    return CallUsage(7.0, LIMITS)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Overloaded(), CallOutcome.OVERLOADED),
        (RateLimited(), CallOutcome.RATE_LIMITED),
        (NoConnection("x"), CallOutcome.UNREACHED),
        (Unreachable("http_503"), CallOutcome.OVERLOADED),
        (Unreachable("http_529"), CallOutcome.OVERLOADED),
        (Unreachable("http_500"), CallOutcome.FAILED),
        (TargetTimedOut(1.0), CallOutcome.FAILED),
        (Permanent("http_400"), CallOutcome.REFUSED),
        (KeyError("x"), CallOutcome.REFUSED),
        (asyncio.CancelledError(), CallOutcome.ABANDONED),
    ],
)
def test_each_error_has_its_outcome(error, outcome):
    """Only some of them lower the lane's rate or open its breaker."""
    source = Source()
    source.grant().settle_after(error)
    assert source.outcomes == [outcome]


def test_a_settlement_carries_the_provider_s_limits_and_the_age_of_the_permit():
    """Retry-After in seconds."""
    source = Source()
    source.grant().settle_after(RateLimited(retry_after=timedelta(minutes=1), limits=LIMITS))
    assert source.settled == [Settlement(CallOutcome.RATE_LIMITED, 5.0, None, 2.0, 60.0, LIMITS)]


def test_only_the_first_settlement_counts():
    """A release after a call does not turn its outcome into `unused`."""
    source = Source()
    permit = source.grant()
    permit.settle(CallOutcome.OK)
    permit.settle(CallOutcome.UNUSED)
    assert source.outcomes == [CallOutcome.OK]


async def test_a_call_uses_the_permit_of_its_task_first():
    """A second call on the same lane acquires another; a release settles what is left."""
    source = Source()
    permits = Permits(source, {"lane": source.grant(), "other": source.grant()})
    assert [await permits.run_call(USE, answer, used) for _ in range(2)] == ["4", "4"]
    permits.release()
    assert source.outcomes == [CallOutcome.OK, CallOutcome.OK, CallOutcome.UNUSED]
    assert source.settled[0] == Settlement(CallOutcome.OK, 5.0, 7.0, 2.0, None, LIMITS)


async def test_a_call_without_a_lane_needs_no_permit():
    """Nothing is settled."""
    source = Source()
    assert await Permits(source).run_call(None, answer, used) == "4"
    assert await Permits().run_call(USE, answer, used) == "4"
    assert source.settled == []


@pytest.mark.parametrize("first", [answer, failing(Permanent("http_400"))])
async def test_a_connection_error_after_a_response_is_an_outage(first):
    """Any response proves that the address is right, even a refusal."""
    source = Source()
    permits = Permits(source)
    await asyncio.gather(permits.run_call(USE, first, used), return_exceptions=True)
    with pytest.raises(NoConnection):
        await permits.run_call(USE, failing(NoConnection("refused")), used)


@pytest.mark.parametrize("first", [failing(NoConnection("refused")), failing(asyncio.CancelledError())])
async def test_a_connection_error_before_any_response_is_a_first_contact_that_failed(first):
    """The URL may be wrong: the evaluation is not charged; a cancelled call proves nothing."""
    source = Source()
    permits = Permits(source)
    await asyncio.gather(permits.run_call(USE, first, used), return_exceptions=True)
    with pytest.raises(NeverReached, match="refused; it has not answered yet"):
        await permits.run_call(USE, failing(NoConnection("refused")), used)
    assert source.outcomes[-1] is CallOutcome.UNREACHED
