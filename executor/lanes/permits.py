"""The permits of one active task.

A permit allows one call. It is acquired with the task, or before an evaluator is called; it is settled
once, with the outcome of the call, or as unused when the task is released.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from eventlog import tracing
from executor.budget.task_budget import UNLIMITED_BUDGET, TaskBudget
from executor.contract import CallFault, NeverReached, NoConnection, Overloaded, RateLimited, Unreachable
from executor.lanes.contract import CallOutcome, LaneLimit, LanePolicy, Settlement
from executor.outcome import EvaluatorTimedOut, TargetTimedOut
from providers.limits import RateLimits

T = TypeVar("T")

OVERLOAD_KINDS = frozenset({"http_503", "http_529"})
"""Kinds of server errors by which a provider reports that it has no capacity now."""


@dataclass(frozen=True, slots=True)
class LaneUse:
    """The lane of a target or an evaluator, with its policy and the limits that the batch declares."""

    lane: str
    policy: LanePolicy = field(default_factory=LanePolicy)
    estimate: float = 0.0
    """Estimated tokens per call, used until the lane has measured it."""
    limits: tuple[LaneLimit, ...] = ()
    """The limits that the batch declares on it."""
    is_overall: bool = False
    """Whether it limits the whole batch: a task holds its permit from its start to its end."""


@dataclass(slots=True, eq=False)
class Permit:
    """The right to make one call."""

    lane: str
    reserved: float
    granted_at: float
    on_settled: Callable[["Permit", Settlement], None]
    clock: Callable[[], float]
    is_settled: bool = False
    waited: float = 0.0
    """Seconds for which the lane granted no permit before this one."""

    def settle(
        self,
        outcome: CallOutcome,
        *,
        tokens: float | None = None,
        retry_after: float | None = None,
        limits: RateLimits | None = None,
    ) -> None:
        """Settle with the outcome of the call; later settlements are ignored."""
        if self.is_settled:
            return
        self.is_settled = True
        age = max(0.0, self.clock() - self.granted_at)
        self.on_settled(self, Settlement(outcome, self.reserved, tokens, age, retry_after, limits))

    def settle_after(self, error: BaseException) -> None:
        """Settle with the outcome of a call that raised."""
        limits = error.limits if isinstance(error, CallFault) else None
        match error:
            case Overloaded():
                self.settle(CallOutcome.OVERLOADED, limits=limits)
            case RateLimited(retry_after=retry_after):
                wait = retry_after.total_seconds() if retry_after else None
                self.settle(CallOutcome.RATE_LIMITED, retry_after=wait, limits=limits)
            case NoConnection():
                self.settle(CallOutcome.UNREACHED)
            case Unreachable(kind=kind) if kind in OVERLOAD_KINDS:
                self.settle(CallOutcome.OVERLOADED, limits=limits)
            case Unreachable() | TargetTimedOut() | EvaluatorTimedOut():
                self.settle(CallOutcome.FAILED, limits=limits)
            case Exception():
                self.settle(CallOutcome.REFUSED, limits=limits)
            case _:
                self.settle(CallOutcome.ABANDONED)


class PermitSource(Protocol):
    """Acquires permits one by one."""

    async def permit(self, use: LaneUse) -> Permit:
        """Acquire a permit for one call; raises `RateLimited` if the lane grants none."""
        ...


@dataclass(slots=True, eq=False)
class Permits:
    """The permits and the budget of one active task."""

    source: PermitSource | None = None
    acquired: dict[str, Permit] = field(default_factory=dict)
    """Permits acquired with the task, by lane."""
    budget: TaskBudget = UNLIMITED_BUDGET
    """The reservation of the batch's budget that its calls draw on."""
    reached: set[str] = field(default_factory=set)
    """Lanes on which the provider has responded to a call of the batch from this executor."""

    async def run_call(
        self, use: LaneUse | None, call: Callable[[], Awaitable[T]], usage: Callable[[T], "CallUsage"]
    ) -> T:
        """Make one call under a permit, and settle it; raises `RateLimited` if there is none.

        A connection error before the provider has responded to the batch is raised as `NeverReached`.
        """
        if use is None or self.source is None:
            return await call()
        permit = await self._acquire(use, self.source)
        try:
            response = await call()
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
        used = usage(response)
        permit.settle(CallOutcome.OK, tokens=used.tokens, limits=used.limits)
        return response

    async def _acquire(self, use: LaneUse, source: PermitSource) -> Permit:
        with tracing.inner("eval.rate_limiter.acquire", lane=use.lane) as span:
            permit = self.acquired.pop(use.lane, None) or await source.permit(use)
            span.set_attributes({"tokens_requested": permit.reserved, "wait_ms": permit.waited * 1000})
            return permit

    def release(self) -> None:
        """Settle unused permits, and release the rest of the budget reservation."""
        while self.acquired:
            self.acquired.popitem()[1].settle(CallOutcome.UNUSED)
        self.budget.release()


@dataclass(frozen=True, slots=True)
class CallUsage:
    """The tokens of a call, and the provider's rate limit headers."""

    tokens: float
    limits: RateLimits | None = None


NO_PERMITS = Permits()
"""For calls that are not metered."""
