"""What targets and evaluators are to an executor, and the ways in which they may fail.

    Fault
    ├── RateLimited   asked too often: try again when told, nothing is charged
    ├── Transient     may go well next time: backoff, and one of the retries is used up
    │   └── Unreachable   nobody is there, or something is broken there: counts against its lane
    │       └── NoConnection   connection refused, or the host name does not resolve
    ├── NeverReached  no connection, and no call of the batch has been answered there: nothing is charged
    └── Permanent     will not get better: the evaluation fails at once

A target raises one of these, or answers. Whatever else it raises is a `Permanent` fault of its own.
Cancellation means stop now: kill what you started, and let `CancelledError` pass.
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
"""What a template may name: `id`, `input`, `expected`, the case's other fields, what was stored."""


class Fault(Exception):  # noqa: N818 - the root of the tree above
    """Why there is no answer, or no judgement."""

    def __init__(self, kind: str, message: str = "", *, limits: RateLimits | None = None) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.message = message
        self.limits = limits
        """What the other side said of its rate limits, if it said anything."""


class RateLimited(Fault):
    """The other side asks for patience."""

    def __init__(
        self,
        message: str = "",
        *,
        retry_after: timedelta = timedelta(seconds=1),
        limits: RateLimits | None = None,
    ) -> None:
        super().__init__("rate_limited", message, limits=limits)
        self.retry_after = retry_after


class Transient(Fault):
    """It may go well next time."""


class Unreachable(Transient):
    """Nobody answered, or only to say that something is broken there: a lane may have to be closed."""


class NoConnection(Unreachable):
    """The connection was refused, or the host name does not resolve."""

    def __init__(self, message: str) -> None:
        super().__init__("connection", message)


class NeverReached(Fault):
    """No connection to an endpoint that has not answered any call of the batch: is its URL right?"""

    def __init__(self, message: str) -> None:
        super().__init__("unreachable", f"{message}; it has not answered yet")


class Permanent(Fault):
    """It will not get better."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a target is asked."""

    evaluation_id: str
    prompt: str
    """The template with every placeholder filled in."""
    case: p.Case
    fields: Fields
    repetition: int = 1
    timeout: float = 300.0
    history: tuple[tuple[str, str], ...] = ()
    """Earlier turns of the conversation: what was asked, and what was answered."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a target came to: the answer, and where code was run its exit code and what it reported."""

    answer: p.Answer
    exit_code: int | None = None
    limits: RateLimits | None = None
    """What the other side said of its rate limits, if it said anything."""


class Target(Protocol):
    """Something that answers; one object serves all evaluations of a batch's target in a process."""

    async def ask(self, question: Question) -> Reply:
        """Answer, or raise a `Fault`; must stop what it started when it is cancelled."""
        ...

    async def aclose(self) -> None:
        """Leave nothing behind."""
        ...


def _nobody_listens(_limits: RateLimits) -> None:
    """Do nothing: whoever is not counted need not say."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What an evaluator is given."""

    case: p.Case
    output: str
    fields: Fields
    answer: p.Answer = field(default_factory=lambda: p.Answer(output=""))
    heard: Callable[[RateLimits], object] = _nobody_listens
    """Whom to tell what a provider says of its rate limits."""


@runtime_checkable
class Sized(Protocol):
    """A target or an evaluator that can bound what a call of it costs."""

    def request_size(self, request: Any) -> RequestSize:  # noqa: ANN401 - a question, or what is judged
        """Measure a request; None: only what bounds every request."""
        ...


class Evaluator(Protocol):
    """Something that judges; one object serves all evaluations of a batch in a process."""

    async def judge(self, judged: Judged) -> p.Score:
        """Judge an answer, or raise a `Fault`; a failed case is a score, not a fault."""
        ...

    async def aclose(self) -> None:
        """Leave nothing behind."""
        ...


@runtime_checkable
class Warming(Protocol):
    """A target or an evaluator that needs a while before its first call."""

    async def warm_up(self) -> None:
        """Get ready: calls that had to wait for it would all come at once, however they were let in."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a process knows that a spec does not say."""

    workdir: str = ""
    """Where the batch was submitted."""
    interpreter: str = ""
    """Of Python functions: the submitter's; none: this process's own."""
    slots: int = 1
    allow_unsandboxed: bool = False
    """Whether untrusted code may run where there is no sandbox: only if somebody said so."""
    breaker_failures: int = 5
    """Failures in a row after which a lane is closed."""
    breaker_seconds: float = 30.0
    """For how long, before one call may try again."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    data_dir: str = ""
    """Scoreline's data directory, which no program may be given."""
    cgroup: str = ""
    """A cgroup delegated to the executor, whose groups count the memory of sandboxes."""


class TargetType(Protocol):
    """How a target is made; entry points of the group `scoreline.targets` name objects like this."""

    def check(self, options: Options) -> None:
        """Raise `ValueError` with a sentence for the user where the options make no sense."""
        ...

    def make(self, options: Options, surroundings: Surroundings) -> Target:
        """Make the target; called once a process and batch."""
        ...


@runtime_checkable
class Metered(Protocol):
    """A type, of targets or evaluators, whose calls are counted by somebody else."""

    def lane(self, options: Options, surroundings: Surroundings) -> str | None:
        """Name the rate limit that calls fall under: provider, account and what else it is counted by.

        None where nobody counts, as with a judge that calls no model. A key is never part of the name;
        a digest of it may be. Raises `ValueError` with a sentence where a key is missing.
        """
        ...

    def tokens(self, options: Options) -> float:
        """Guess what a call takes, until it is known."""
        ...


class EvaluatorType(Protocol):
    """How an evaluator is made; entry points of the group `scoreline.evaluators` name objects like this."""

    needs_expected: bool
    """Whether a case without an expected value can't be judged."""

    def check(self, options: Options) -> None:
        """Raise `ValueError` with a sentence for the user where the options make no sense."""
        ...

    def placeholders(self, options: Options) -> frozenset[str]:
        """Name the fields that the options' templates want of every case, besides `output`."""
        ...

    def make(self, name: str, options: Options, surroundings: Surroundings) -> Evaluator:
        """Make the evaluator; called once a process and batch."""
        ...
