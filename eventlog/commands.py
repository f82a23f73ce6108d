"""Commands to an evaluation, and `decide`: the event that follows, or `IllegalTransition`.

Commands are imperative and carry what the caller knows; `decide` is pure and looks only at how far
the attempt has come. Sequences are assigned here, so that every event has passed the lifecycle first.
"""

from dataclasses import dataclass
from typing import NamedTuple

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


class AttemptPosition(NamedTuple):
    """How far a writer has come with an evaluation: all that a decision looks at."""

    phase: life.Phase = life.Phase.UNOPENED
    attempt: int = 0
    sequence: int = -1


class Decision(NamedTuple):
    """The event that follows, but for its envelope, and where it leads."""

    after: AttemptPosition
    payload: p.AnyPayload


def decide(position: AttemptPosition, command: Command) -> Decision:
    """Return the event that follows from a command; raises `IllegalTransition` where none may."""
    match command:
        case OpenAttempt(opening):
            return _open(position, opening)
        case RecordProgress(fact):
            return _follow(position, fact)


def _open(position: AttemptPosition, opening: p.Queued | p.Cancelled | p.TimedOut) -> Decision:
    phase, event_type = position.phase, e.type_of(opening)
    if phase in life.FINAL or (phase in life.SETTLED and not _by_operator(opening)):
        raise life.IllegalTransition(phase, event_type, sequence=0)
    return Decision(AttemptPosition(life.OPENINGS[event_type], position.attempt + 1, 0), opening)


def _follow(position: AttemptPosition, payload: p.AnyPayload) -> Decision:
    phase, attempt, sequence = position
    following = life.advance(phase, e.type_of(payload), sequence=sequence + 1)
    return Decision(AttemptPosition(following, attempt, sequence + 1), payload)


def _by_operator(opening: p.Queued | p.Cancelled | p.TimedOut) -> bool:
    return isinstance(opening, p.Queued) and opening.reason is p.OpeningReason.OPERATOR
