"""What may be asked of an evaluation, and `decide`: the event that follows, or a refusal.

Commands are imperative and carry what the caller knows; `decide` is pure and looks only at the state.
Numbers are given here too, so that whoever writes an event has asked the lifecycle first.
"""

from dataclasses import dataclass

from eventlog import events as e
from eventlog import lifecycle as life
from eventlog import payloads as p


@dataclass(frozen=True, slots=True)
class OpenAttempt:
    """The coordinator opens the next attempt, or ends the evaluation by opening it closed."""

    opening: p.Queued | p.Cancelled | p.TimedOut


Fact = (
    p.Provisioning | p.Running | p.Responded | p.Scored | p.Completed | p.Retrying | p.Failed | p.TimedOut
)
"""What an owner records, in the order of its attempt."""


@dataclass(frozen=True, slots=True)
class RecordProgress:
    """The owner records what its attempt came to next."""

    fact: Fact


Command = OpenAttempt | RecordProgress


@dataclass(frozen=True, slots=True)
class Decision:
    """The event that follows, but for its envelope."""

    attempt: int
    sequence: int
    payload: p.AnyPayload


def decide(state: life.State, command: Command) -> Decision:
    """Say which event follows from a command; raises `IllegalTransition` where none may."""
    match command:
        case OpenAttempt(opening):
            return _open(state, opening)
        case RecordProgress(fact):
            return _follow(state, fact)


def _open(state: life.State, opening: p.Queued | p.Cancelled | p.TimedOut) -> Decision:
    phase = life.phase_of(state)
    event_type = e.type_of(opening)
    if phase in life.FINAL or (phase in life.SETTLED and not _by_operator(opening)):
        raise life.IllegalTransition(phase, event_type, sequence=0)
    return Decision(state.attempt + 1, 0, opening)


def _follow(state: life.State, payload: p.AnyPayload) -> Decision:
    sequence = state.sequence + 1
    life.advance(life.phase_of(state), e.type_of(payload), sequence=sequence)
    return Decision(state.attempt, sequence, payload)


def _by_operator(opening: p.Queued | p.Cancelled | p.TimedOut) -> bool:
    return isinstance(opening, p.Queued) and opening.reason is p.OpeningReason.OPERATOR
