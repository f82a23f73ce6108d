"""What is handed in: a batch, and its evaluations one after the other, however many there are."""

from dataclasses import dataclass

from eventlog import payloads as p


@dataclass(frozen=True, slots=True)
class Recall:
    """Something an earlier evaluation of the group leaves for a later one."""

    number: int
    """Which evaluation, by its place in the submission, from 1."""
    stored_as: str | None = None
    """The field its output becomes; None where it is an earlier turn of the same conversation."""


@dataclass(frozen=True, slots=True)
class SerialPlace:
    """An evaluation's place in a serial group; the first of a group has none."""

    follows: int
    """It is not started before this one has ended, by its place in the submission, from 1."""
    recalls: tuple[Recall, ...] = ()
    """Whose answers it needs: without one of them it fails."""


@dataclass(frozen=True, slots=True)
class NewEvaluation:
    """One repetition of one variant of one case."""

    case: p.Case
    variant: int = 0
    repetition: int = 1
    answer: p.Answer | None = None
    """An answer that is known already: recorded."""
    cache_key: str | None = None
    """A digest of what decides the answer, where answers may be taken from earlier batches."""
    serial: SerialPlace | None = None
