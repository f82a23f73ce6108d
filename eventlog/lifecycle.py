"""The life of an evaluation as a strict, pure state machine.

`TRANSITIONS` and `OPENINGS` are the whole grammar: the docs' diagram is drawn from them, the storage
worker steps through them by name (`advance`), and `evolve` builds from them the states that readers
match on. A pair that is not in the tables raises `IllegalTransition`; there is no default.

`provisioning → completed` is illegal on purpose. Allowing it hides that the running event was lost.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from eventlog import events as e
from eventlog import payloads as p


class Phase(StrEnum):
    """A state by name, as tables and diagrams show it."""

    __hash__ = str.__hash__  # Enum's own is written in Python, and every step looks something up by phase

    UNOPENED = "unopened"
    QUEUED = "queued"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    RESPONDED = "responded"
    RETRYING = "retrying"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


TRANSITIONS: dict[Phase, dict[str, Phase]] = {
    Phase.UNOPENED: {},
    Phase.QUEUED: {
        "provisioning": Phase.PROVISIONING,
        "failed": Phase.FAILED,
    },
    Phase.PROVISIONING: {
        "running": Phase.RUNNING,
        "retrying": Phase.RETRYING,
        "failed": Phase.FAILED,
        "timed_out": Phase.TIMED_OUT,
    },
    Phase.RUNNING: {
        "responded": Phase.RESPONDED,
        "completed": Phase.COMPLETED,
        "retrying": Phase.RETRYING,
        "failed": Phase.FAILED,
        "timed_out": Phase.TIMED_OUT,
    },
    Phase.RESPONDED: {
        "scored": Phase.RESPONDED,
        "completed": Phase.COMPLETED,
        "retrying": Phase.RETRYING,
        "failed": Phase.FAILED,
        "timed_out": Phase.TIMED_OUT,
    },
    Phase.RETRYING: {},
    Phase.FAILED: {},
    Phase.TIMED_OUT: {},
    Phase.COMPLETED: {},
    Phase.CANCELLED: {},
}
"""What each state accepts after sequence 0, within one attempt."""

OPENINGS: dict[str, Phase] = {
    "queued": Phase.QUEUED,
    "cancelled": Phase.CANCELLED,
    "timed_out": Phase.TIMED_OUT,
}
"""What sequence 0 of a higher attempt may be, in every state that is not final."""

FINAL = frozenset({Phase.COMPLETED, Phase.CANCELLED})
SETTLED = frozenset({Phase.FAILED, Phase.TIMED_OUT})
ENDED = FINAL | SETTLED
CLOSED = ENDED | {Phase.RETRYING}
OWNERS_CLOSING = frozenset({"completed", "retrying", "failed", "timed_out"})
"""Event types by which an owner closes its attempt."""
CLOSING_TYPES = OWNERS_CLOSING | {"cancelled"}
"""Event types that close an attempt."""


class IllegalTransition(Exception):  # noqa: N818 - a fact about a history, and the word readers know it by
    """A (state, event) pair outside the tables."""

    def __init__(self, phase: Phase, event_type: str, *, sequence: int, detail: str = "") -> None:
        super().__init__(f"{phase} does not accept {event_type} at sequence {sequence}{detail}")
        self.phase = phase
        self.event_type = event_type
        self.sequence = sequence


def advance(phase: Phase, event_type: str, *, sequence: int) -> Phase:
    """Step within an attempt, by names alone."""
    following = TRANSITIONS[phase].get(event_type)
    if following is None:
        raise IllegalTransition(phase, event_type, sequence=sequence)
    return following


def reopen(phase: Phase, event: e.Event) -> Phase:
    """Step into a higher attempt through its sequence 0."""
    following = OPENINGS.get(event.type) if event.sequence == 0 else None
    if following is None or phase in FINAL:
        raise IllegalTransition(phase, event.type, sequence=event.sequence)
    if phase in SETTLED and not _is_operators(event):
        raise IllegalTransition(phase, event.type, sequence=0, detail=" unless an operator asks")
    return following


def _is_operators(event: e.Event) -> bool:
    return isinstance(event, e.QueuedEvent) and event.data.reason is p.OpeningReason.OPERATOR


@dataclass(frozen=True, slots=True)
class UnopenedState:
    """Nothing is known but that the evaluation exists."""

    attempt: int = 0
    sequence: int = -1


@dataclass(frozen=True, slots=True)
class AttemptState:
    """Base of all states: how far the history has come."""

    attempt: int
    sequence: int


@dataclass(frozen=True, slots=True)
class QueuedState(AttemptState):
    """Waits for an executor."""

    opening: p.Queued


@dataclass(frozen=True, slots=True)
class ProvisioningState(AttemptState):
    """An executor owns the attempt."""

    claim: p.Provisioning


@dataclass(frozen=True, slots=True)
class RunningState(AttemptState):
    """The target is at work."""

    claim: p.Provisioning
    target: str


@dataclass(frozen=True, slots=True)
class RespondedState(AttemptState):
    """The answer is on record and being scored."""

    claim: p.Provisioning
    answer: p.Answer
    scores: tuple[p.Score, ...]


@dataclass(frozen=True, slots=True)
class RetryingState(AttemptState):
    """The attempt is closed; the next opens at `retry_at`."""

    error: p.ErrorDetail
    retry_at: datetime


@dataclass(frozen=True, slots=True)
class FailedState(AttemptState):
    """Settled: counted, listed, an operator may try again."""

    error: p.ErrorDetail


@dataclass(frozen=True, slots=True)
class TimedOutState(AttemptState):
    """Settled: a limit passed."""

    limit: str


@dataclass(frozen=True, slots=True)
class CompletedState(AttemptState):
    """Final: the verdict stands."""

    result: p.Completed


@dataclass(frozen=True, slots=True)
class CancelledState(AttemptState):
    """Final: called off."""

    by: str


State = (
    UnopenedState
    | QueuedState
    | ProvisioningState
    | RunningState
    | RespondedState
    | RetryingState
    | FailedState
    | TimedOutState
    | CompletedState
    | CancelledState
)
"""Any state; each carries only what it has."""

_PHASES: dict[type[State], Phase] = {
    UnopenedState: Phase.UNOPENED,
    QueuedState: Phase.QUEUED,
    ProvisioningState: Phase.PROVISIONING,
    RunningState: Phase.RUNNING,
    RespondedState: Phase.RESPONDED,
    RetryingState: Phase.RETRYING,
    FailedState: Phase.FAILED,
    TimedOutState: Phase.TIMED_OUT,
    CompletedState: Phase.COMPLETED,
    CancelledState: Phase.CANCELLED,
}


def phase_of(state: State) -> Phase:
    """Name a state."""
    return _PHASES[type(state)]


class OutOfOrder(Exception):  # noqa: N818 - as above
    """An event that is not the next one: the caller should have reordered first."""

    def __init__(self, state: State, event: e.Event) -> None:
        super().__init__(f"{event.key} does not follow {(state.attempt, state.sequence)}")
        self.state = state
        self.event = event


def evolve(state: State, event: e.Event) -> State:
    """Apply one event; total and strict."""
    if event.sequence == 0 and event.attempt > state.attempt:
        reopen(phase_of(state), event)
        return _opened(event)
    if event.key != (state.attempt, state.sequence + 1):
        raise OutOfOrder(state, event)
    advance(phase_of(state), event.type, sequence=event.sequence)
    return _continued(state, event)


def _opened(event: e.Event) -> State:
    place = event.key
    match event.data:
        case p.Queued() as opening:
            return QueuedState(*place, opening)
        case p.Cancelled(by=by):
            return CancelledState(*place, by)
        case p.TimedOut(limit=limit):
            return TimedOutState(*place, limit)
        case _:
            raise IllegalTransition(Phase.UNOPENED, event.type, sequence=0)


def _continued(state: State, event: e.Event) -> State:
    place = event.key
    match state, event.data:
        case QueuedState(), p.Provisioning() as claim:
            return ProvisioningState(*place, claim)
        case ProvisioningState(claim=claim), p.Running(target=target):
            return RunningState(*place, claim, target)
        case RunningState(claim=claim), p.Responded() as answer:
            return RespondedState(*place, claim, answer, ())
        case RespondedState(claim=claim, answer=answer, scores=scores), p.Scored() as score:
            return RespondedState(*place, claim, answer, (*scores, score))
        case RunningState() | RespondedState(), p.Completed() as result:
            return CompletedState(*place, result)
        case ProvisioningState() | RunningState() | RespondedState(), p.Retrying(
            error=error, retry_at=retry_at
        ):
            return RetryingState(*place, error, retry_at)
        case QueuedState() | ProvisioningState() | RunningState() | RespondedState(), p.Failed(error=error):
            return FailedState(*place, error)
        case ProvisioningState() | RunningState() | RespondedState(), p.TimedOut(limit=limit):
            return TimedOutState(*place, limit)
        case _:
            raise IllegalTransition(phase_of(state), event.type, sequence=event.sequence)
