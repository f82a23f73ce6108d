"""The protocols of targets and evaluators, and the faults that a call may raise.

    CallFault
    ├── RateLimited   the provider refused the call for its rate: retried after `retry_after`, not charged
    │   └── Overloaded    it has no capacity now: retried, not charged; the lane's rate is not the cause
    ├── Transient     may succeed on retry: exponential backoff, and one retry of the evaluation is used up
    │   └── Unreachable   no response, or a server error: counts against the circuit breaker of its lane
    │       └── NoConnection   connection refused, or the host name does not resolve
    ├── NeverReached  no connection, and the endpoint has answered no call of the batch: not charged
    └── Permanent     a retry would not help: the evaluation fails at once

A target returns a `TargetReply` or raises one of these; any other exception counts as `Permanent`.
Cancellation means stop now: end every child process and call, and let `CancelledError` pass.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

from pydantic import JsonValue

from domain.batch_spec import Options
from eventlog import payloads as p
from providers.limits import RateLimits
from taskqueue.budget.estimates import RequestSize

Fields = Mapping[str, JsonValue]
"""Values that a template may name: `id`, `input`, `expected`, the case's other fields, stored values."""


class CallFault(Exception):  # noqa: N818 - the root of the tree above
    """Why a call produced no answer, or no score."""

    def __init__(self, kind: str, message: str = "", *, limits: RateLimits | None = None) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.message = message
        self.limits = limits
        """The provider's rate-limit headers, if it sent any."""


class RateLimited(CallFault):
    """The provider refused the call for its rate."""

    def __init__(
        self,
        message: str = "",
        *,
        retry_after: timedelta | None = None,
        limits: RateLimits | None = None,
    ) -> None:
        super().__init__("rate_limited", message, limits=limits)
        self.retry_after = retry_after
        """The provider's Retry-After; without one the call is retried by exponential backoff."""


class Overloaded(RateLimited):
    """The provider has no capacity now (529), whatever the rate of this account."""


class Transient(CallFault):
    """The call may succeed on retry."""


class Unreachable(Transient):
    """The endpoint did not respond, or reported a server error: opens the circuit breaker of its lane."""


class NoConnection(Unreachable):
    """The connection was refused, or the host name does not resolve."""

    def __init__(self, message: str) -> None:
        super().__init__("connection", message)


class NeverReached(CallFault):
    """No connection to an endpoint that has not answered any call of the batch: is its URL right?"""

    def __init__(self, message: str) -> None:
        super().__init__("unreachable", f"{message}; it has not answered yet")


class Permanent(CallFault):
    """A retry would not help."""


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """The input of one call of a target."""

    evaluation_id: str
    prompt: str
    """The rendered template."""
    case: p.Case
    fields: Fields
    repetition: int = 1
    timeout: float = 300.0
    history: tuple[tuple[str, str], ...] = ()
    """Earlier turns of the conversation: prompt and answer of each."""


@dataclass(frozen=True, slots=True)
class TargetReply:
    """The result of one call of a target: the answer, and the exit code where a program ran."""

    answer: p.Answer
    exit_code: int | None = None
    limits: RateLimits | None = None
    """The provider's rate-limit headers, if it sent any."""


class Target(Protocol):
    """The system under evaluation; one object serves all evaluations of a batch's target in a process."""

    async def call(self, request: TargetRequest) -> TargetReply:
        """Answer, or raise a `CallFault`; must stop what it started when it is cancelled."""
        ...

    async def aclose(self) -> None:
        """Release every resource."""
        ...


def _ignore_rate_limits(_limits: RateLimits) -> None:
    """Discard rate-limit headers: the evaluator has no lane."""


@dataclass(frozen=True, slots=True)
class ScoringRequest:
    """The input of one call of an evaluator."""

    case: p.Case
    output: str
    fields: Fields
    answer: p.Answer = field(default_factory=lambda: p.Answer(output=""))
    on_rate_limits: Callable[[RateLimits], object] = _ignore_rate_limits
    """Receives the rate-limit headers of a provider that the evaluator calls."""


@runtime_checkable
class SupportsRequestSize(Protocol):
    """A target or an evaluator that can bound the cost of a call."""

    def request_size(self, request: Any) -> RequestSize:  # noqa: ANN401 - of a target or of an evaluator
        """Measure a request; None: only the bound that holds for every request."""
        ...


class Evaluator(Protocol):
    """Scores answers; one object serves all evaluations of a batch in a process."""

    async def score(self, request: ScoringRequest) -> p.Score:
        """Score an answer, or raise a `CallFault`; a failed case is a score, not a fault."""
        ...

    async def aclose(self) -> None:
        """Release every resource."""
        ...


@runtime_checkable
class SupportsWarmUp(Protocol):
    """A target or an evaluator with a slow start."""

    async def warm_up(self) -> None:
        """Start up before the first call: calls queued behind a cold start would be sent as one burst."""
        ...


@dataclass(frozen=True, slots=True)
class ExecutionEnvironment:
    """Facts of the executor's process that no batch spec contains."""

    workdir: str = ""
    """The directory where the batch was submitted."""
    interpreter: str = ""
    """The submitter's Python, for Python functions; empty: this process's own."""
    slots: int = 1
    allow_unsandboxed: bool = False
    """Whether untrusted code may run on a host without a sandbox."""
    breaker_failures: int = 5
    """Consecutive failures that open the circuit breaker of a lane."""
    breaker_seconds: float = 30.0
    """How long an open breaker waits before its half-open probe."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    data_dir: str = ""
    """Scoreline's data directory, which no program may access."""
    cgroup: str = ""
    """A cgroup delegated to the executor, whose groups count the memory of sandboxes."""


class TargetType(Protocol):
    """A factory of targets; entry points of the group `scoreline.targets` name objects like this."""

    def check(self, options: Options) -> None:
        """Validate options; raises `ValueError` with a message for the user."""
        ...

    def make(self, options: Options, environment: ExecutionEnvironment) -> Target:
        """Create the target; called once a process and batch."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A type of targets or evaluators whose calls count against a provider's rate limit."""

    def lane(self, options: Options, environment: ExecutionEnvironment) -> str | None:
        """Name the lane of the calls: provider, account and, where it counts so, model.

        None where no limit applies, as with a judge that calls no model. A key is never part of the name;
        a digest of it may be. Raises `ValueError` with a message for the user where a key is missing.
        """
        ...

    def tokens(self, options: Options) -> float:
        """Estimate the tokens of a call, until measured ones replace the estimate."""
        ...


class EvaluatorType(Protocol):
    """A factory of evaluators; entry points of the group `scoreline.evaluators` name objects like this."""

    needs_expected: bool
    """Whether a case without an expected value can't be scored."""

    def check(self, options: Options) -> None:
        """Validate options; raises `ValueError` with a message for the user."""
        ...

    def placeholders(self, options: Options) -> frozenset[str]:
        """Name the fields that the options' templates require of every case, besides `output`."""
        ...

    def make(self, name: str, options: Options, environment: ExecutionEnvironment) -> Evaluator:
        """Create the evaluator; called once a process and batch."""
        ...
