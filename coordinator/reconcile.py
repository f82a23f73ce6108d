"""What to do about one evaluation that has not moved for a while: one pure decision.

It is asked again and again, by any coordinator, and every step that follows from it may be repeated. This
alone makes "never stuck" true: whatever died or was lost, some row of this table still applies.

    ended, or nobody was ever told of it          → wait: there is nothing to mend
    the stream knows more than the row            → wait: the storage worker has the next word
    retrying                                      → when due: open the next attempt
    claimed by one who lives, within its time     → wait
    claimed by one who is dead or hung            → open the next attempt
    claimed in Postgres, and the claim is gone    → open the next attempt
    opened in an epoch that is over               → open the next attempt
    the opening is not in the stream              → publish it
    nothing of its batch is in the queue any more → enqueue it again
    else                                          → wait: its task is on its way

After an epoch change, the next attempt of what was published before it opens once the grace is over: an
owner that Redis has forgotten may be appending its attempt again, with an answer that was paid for. What
was published in the current epoch has lost nothing since, and opens at once (model: `GRACE_AFTER_LOSS`).
"""

from dataclasses import dataclass
from enum import StrEnum

from eventlog.lifecycle import ENDED, Phase


class Next(StrEnum):
    """What to do."""

    WAIT = "wait"
    PUBLISH = "publish"
    ENQUEUE = "enqueue"
    RETRY = "retry"
    """Open the next attempt: the last one asked for it."""
    LOST = "lost"
    """Open the next attempt: the last one has nobody who would end it."""


class Told(StrEnum):
    """In which epoch executors were told of the newest attempt."""

    NEVER = "never"
    BEFORE = "before"
    NOW = "now"


class Owner(StrEnum):
    """Who has claimed the newest attempt, as the stream has it."""

    NOBODY = "nobody"
    AT_WORK = "at work"
    GONE = "gone"
    """Dead, or silent for longer than it may take."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What there is to know about an evaluation."""

    phase: Phase
    told: Told
    owner: Owner = Owner.NOBODY
    claimed_in_row: bool = False
    is_ahead: bool = False
    """Whether the stream holds an end of this attempt, or a higher one, that the row does not."""
    has_opening: bool = True
    """Whether the stream holds the newest attempt's opening."""
    is_due: bool = True
    """Whether the time of the next attempt has come."""
    is_settled: bool = True
    """Whether the epoch has held for the grace."""
    is_drained: bool = False
    """Whether nothing of its batch is in the queue any more."""

    @property
    def may_open(self) -> bool:
        """Whether no owner can still be appending this evaluation again after an epoch change."""
        return self.is_settled or self.told is Told.NOW


def reconcile(seen: Sight) -> Next:
    """Decide; each step that follows may be repeated."""
    if seen.phase in ENDED or seen.told is Told.NEVER or seen.is_ahead:
        return Next.WAIT
    if seen.phase is Phase.RETRYING:
        return Next.RETRY if seen.is_due and seen.may_open else Next.WAIT
    if seen.owner is Owner.AT_WORK:
        return Next.WAIT
    if seen.owner is Owner.GONE or seen.claimed_in_row or seen.told is Told.BEFORE:
        return Next.LOST if seen.may_open else Next.WAIT
    if not seen.has_opening:
        return Next.PUBLISH
    return Next.ENQUEUE if seen.is_drained else Next.WAIT
