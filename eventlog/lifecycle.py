"""The life of an evaluation as a strict, pure state machine.

`TRANSITIONS` and `OPENINGS` are the whole grammar: the docs' diagram is drawn from them, readers step
through them by name (`advance`, `reopen`), and a writer's command becomes an event by them: `decide`, which
assigns the sequence, so that every event has passed the lifecycle first. A pair that is not in the tables
raises `IllegalTransition`; there is no default.

`provisioning → completed` is illegal on purpose. Allowing it hides that the running event was lost.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

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


def reopen(phase: Phase, opening: p.AnyPayload, *, sequence: int) -> Phase:
    """Step into a higher attempt through its sequence 0."""
    event_type = e.type_of(opening)
    following = OPENINGS.get(event_type) if sequence == 0 else None
    if following is None or phase in FINAL:
        raise IllegalTransition(phase, event_type, sequence=sequence)
    if phase in SETTLED and not _is_operators(opening):
        raise IllegalTransition(phase, event_type, sequence=0, detail=" unless an operator asks")
    return following


def _is_operators(opening: p.AnyPayload) -> bool:
    return isinstance(opening, p.Queued) and opening.reason is p.OpeningReason.OPERATOR


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

    phase: Phase = Phase.UNOPENED
    attempt: int = 0
    sequence: int = -1


class Decision(NamedTuple):
    """The event that follows, but for its envelope, and where it leads."""

    after: AttemptPosition
    payload: p.AnyPayload


def decide(position: AttemptPosition, command: Command) -> Decision:
    """Return the event that follows from a command; raises `IllegalTransition` where none may."""
    phase, attempt, sequence = position
    match command:
        case OpenAttempt(opening):
            following = reopen(phase, opening, sequence=0)
            return Decision(AttemptPosition(following, attempt + 1, 0), opening)
        case RecordProgress(fact):
            following = advance(phase, e.type_of(fact), sequence=sequence + 1)
            return Decision(AttemptPosition(following, attempt, sequence + 1), fact)
