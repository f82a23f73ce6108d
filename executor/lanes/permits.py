"""What a task in hand may call, and what is said when it has called.

A permit is for one call. It is lent with the task, or asked for when a judge is to be called; it is settled
once, with what came of the call, or given back unused when the task is let go.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from eventlog import tracing
from executor.budget.spending import UNLIMITED_SPENDING, Spending
from executor.contract import CallFault, NeverReached, NoConnection, RateLimited, Unreachable
from executor.faults import EvaluatorTimedOut, TargetTimedOut
from executor.lanes.contract import LaneLimit, Outcome, Policy, Settlement
from providers.limits import RateLimits

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LaneUse:
    """A lane that something has to ask, and what it knows of it."""

    lane: str
    policy: Policy = field(default_factory=Policy)
    estimate: float = 0.0
    """Tokens of a call, until it is known."""
    limits: tuple[LaneLimit, ...] = ()
    """Those that the batch declares on it."""
    is_overall: bool = False
    """Whether it counts all calls of a batch: a task holds its permit from its start to its end."""


@dataclass(slots=True, eq=False)
class Permit:
    """Leave to call once."""

    lane: str
    reserved: float
    granted_at: float
    on_settled: Callable[["Permit", Settlement], None]
    clock: Callable[[], float]
    is_settled: bool = False
    waited: float = 0.0
    """Seconds for which the lane had nothing before."""

    def settle(
        self,
        outcome: Outcome,
        *,
        tokens: float | None = None,
        retry_after: float | None = None,
        limits: RateLimits | None = None,
    ) -> None:
        """Say what came of the call; only the first word counts."""
        if self.is_settled:
            return
        self.is_settled = True
        age = max(0.0, self.clock() - self.granted_at)
        self.on_settled(self, Settlement(outcome, self.reserved, tokens, age, retry_after, limits))

    def settle_after(self, error: BaseException) -> None:
        """Say what came of a call that raised."""
        limits = error.limits if isinstance(error, CallFault) else None
        match error:
            case RateLimited(retry_after=retry_after):
                self.settle(Outcome.RATE_LIMITED, retry_after=retry_after.total_seconds(), limits=limits)
            case NoConnection():
                self.settle(Outcome.UNREACHED)
            case Unreachable() | TargetTimedOut() | EvaluatorTimedOut():
                self.settle(Outcome.FAILED, limits=limits)
            case Exception():
                self.settle(Outcome.REFUSED, limits=limits)
            case _:
                self.settle(Outcome.ABANDONED)


class Lender(Protocol):
    """Whoever asks lanes for more."""

    async def permit(self, use: LaneUse) -> Permit:
        """Return leave to call now; raises `RateLimited` where the lane has none."""
        ...


@dataclass(slots=True, eq=False)
class Permits:
    """What one task in hand may call."""

    lender: Lender | None = None
    lent: dict[str, Permit] = field(default_factory=dict)
    spending: Spending = UNLIMITED_SPENDING
    """What of the batch's budget its calls draw on."""
    reached: set[str] = field(default_factory=set)
    """Lanes on which a call of the batch was answered, as far as this executor knows."""

    async def calling(
        self, use: LaneUse | None, call: Callable[[], Awaitable[T]], used: Callable[[T], "Used"]
    ) -> T:
        """Make one call under a permit, and settle it; raises `RateLimited` where there is none.

        No connection at the first contact of the batch is raised as `NeverReached`.
        """
        if use is None or self.lender is None:
            return await call()
        permit = await self._acquired(use, self.lender)
        try:
            got = await call()
        except NoConnection as error:
            permit.settle_after(error)
            if use.lane in self.reached:
                raise
            raise NeverReached(error.message) from error
        except BaseException as error:
            permit.settle_after(error)
            if isinstance(error, Exception):
                self.reached.add(use.lane)
            raise
        self.reached.add(use.lane)
        came_to = used(got)
        permit.settle(Outcome.OK, tokens=came_to.tokens, limits=came_to.limits)
        return got

    async def _acquired(self, use: LaneUse, lender: Lender) -> Permit:
        with tracing.inner("eval.rate_limiter.acquire", lane=use.lane) as acquiring:
            permit = self.lent.pop(use.lane, None) or await lender.permit(use)
            acquiring.set_attributes({"tokens_requested": permit.reserved, "wait_ms": permit.waited * 1000})
            return permit

    def release(self) -> None:
        """Give back what was not used."""
        while self.lent:
            self.lent.popitem()[1].settle(Outcome.UNUSED)
        self.spending.release()


@dataclass(frozen=True, slots=True)
class Used:
    """What a call took, and what the other side said of its limits."""

    tokens: float
    limits: RateLimits | None = None


NO_PERMITS = Permits()
"""For what nobody counts."""
