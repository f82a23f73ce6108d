"""The states of an evaluation: `evolve` applies an event to a state. Pure and strict.

Each state carries only what it has. Which event a state accepts is in the tables of `lifecycle`.
"""

from dataclasses import dataclass
from datetime import datetime

from eventlog import events as e
from eventlog import payloads as p
from eventlog.lifecycle import IllegalTransition, Phase, advance, reopen


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
"""Any state."""

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


class OutOfOrder(Exception):  # noqa: N818 - a fact about a history
    """An event that is not the next one: the caller should have reordered first."""

    def __init__(self, state: State, event: e.Event) -> None:
        super().__init__(f"{event.key} does not follow {(state.attempt, state.sequence)}")
        self.state = state
        self.event = event


def evolve(state: State, event: e.Event) -> State:
    """Apply one event; total and strict."""
    if event.sequence == 0 and event.attempt > state.attempt:
        reopen(phase_of(state), event.data, sequence=0)
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
