"""The input of acceptance: the evaluations of a batch, streamed one by one."""

from dataclasses import dataclass

from eventlog import payloads as p


@dataclass(frozen=True, slots=True)
class Recall:
    """The output of an earlier evaluation of the group that a later one needs."""

    number: int
    """The number of the earlier evaluation in the submission, from 1."""
    stored_as: str | None = None
    """The field that receives its output; None for an earlier turn of the same conversation."""


@dataclass(frozen=True, slots=True)
class SerialPlace:
    """An evaluation's place in a serial group; the first of a group has none."""

    follows: int
    """The number in the submission, from 1, of the evaluation that must end first."""
    recalls: tuple[Recall, ...] = ()
    """The answers it needs: without one of them it fails."""


@dataclass(frozen=True, slots=True)
class NewEvaluation:
    """One repetition of one variant of one case."""

    case: p.Case
    variant: int = 0
    repetition: int = 1
    answer: p.Answer | None = None
    """A recorded answer."""
    cache_key: str | None = None
    """A digest of the request, where answers of earlier batches may be reused."""
    serial: SerialPlace | None = None
