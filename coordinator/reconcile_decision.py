"""The reconciler's decision about one evaluation without recent progress. Pure.

Any coordinator may take it at any time, and every action is idempotent. This alone makes "never stuck"
true: whichever process died, whatever Redis lost, some row of this table applies.

    ended, or never published                     → wait: nothing to repair
    the stream is ahead of the row                → wait: the storage worker applies it
    retrying (the ledger selects due retries)     → open the next attempt
    claimed by a live executor, within deadline   → wait
    claimed by a dead or hung executor            → open the next attempt
    claimed in Postgres, claim lost from Redis    → open the next attempt
    published in an old epoch                     → open the next attempt
    the opening is not in the stream              → publish it
    the queues of its batch are drained           → enqueue it again
    else                                          → wait: its task is in the queue

After an epoch change, the next attempt of an evaluation that was published before opens once the grace
period is over: an owner may be re-appending its attempt, with an answer that was paid for. An evaluation
that was published in the current epoch has lost nothing, and its next attempt opens at once (model:
`GRACE_AFTER_LOSS`).
"""

from dataclasses import dataclass
from enum import StrEnum

from eventlog.lifecycle import ENDED, Phase


class ReconcileAction(StrEnum):
    """The action of the reconciler."""

    WAIT = "wait"
    PUBLISH = "publish"
    ENQUEUE = "enqueue"
    RETRY = "retry"
    """Open the next attempt: the last one requested a retry."""
    LOST = "lost"
    """Open the next attempt: the last one has no live owner."""


class Published(StrEnum):
    """The epoch in which the newest attempt was published to executors."""

    NEVER = "never"
    OLD_EPOCH = "old_epoch"
    CURRENT_EPOCH = "current_epoch"


class Owner(StrEnum):
    """The state of the executor that has claimed the newest attempt, according to the stream."""

    NONE = "none"
    ALIVE = "alive"
    LOST = "lost"
    """Dead, or past the attempt deadline."""


@dataclass(frozen=True, slots=True)
class EvaluationView:
    """The facts about an evaluation that the decision depends on."""

    phase: Phase
    published: Published
    owner: Owner = Owner.NONE
    claimed_in_row: bool = False
    is_ahead: bool = False
    """Whether the stream holds an end of this attempt, or a higher attempt, that the row does not."""
    has_opening: bool = True
    """Whether the stream holds the newest attempt's opening."""
    is_settled: bool = True
    """Whether the grace period of the epoch is over."""
    is_drained: bool = False
    """Whether the queues of its batch are empty."""

    @property
    def may_open(self) -> bool:
        """Whether no owner can still be re-appending this evaluation after an epoch change."""
        return self.is_settled or self.published is Published.CURRENT_EPOCH


def reconcile(view: EvaluationView) -> ReconcileAction:
    """Choose the action; each is idempotent."""
    if view.phase in ENDED or view.published is Published.NEVER or view.is_ahead:
        return ReconcileAction.WAIT
    if view.phase is Phase.RETRYING:
        return ReconcileAction.RETRY if view.may_open else ReconcileAction.WAIT
    if view.owner is Owner.ALIVE:
        return ReconcileAction.WAIT
    if view.owner is Owner.LOST or view.claimed_in_row or view.published is Published.OLD_EPOCH:
        return ReconcileAction.LOST if view.may_open else ReconcileAction.WAIT
    if not view.has_opening:
        return ReconcileAction.PUBLISH
    return ReconcileAction.ENQUEUE if view.is_drained else ReconcileAction.WAIT
