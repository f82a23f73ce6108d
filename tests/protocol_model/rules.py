"""The rules of the protocol, numbered; a search may be asked to do without some.

What cannot be switched off is the model's shape: only coordinators open attempts (1), openings of
cancelled and timed_out end the row (5), a claim waits for its reply (12), first entry of a key (19).
"""

from enum import Enum


class Rule(Enum):
    """A clause of the protocol, as a sentence that begins with its number."""

    __hash__ = object.__hash__

    ROW_IS_LOCKED = (
        "2: an opening commits only if the row is still at the attempt that was read and not ended"
    )
    COUNTERS_FROM_LOCKED_ROW = "3: an opening moves the counters from the locked row"
    OPENED_UNPUBLISHED = "3: an opening is unpublished until it is in the stream and in the queue"
    OPENING_CARRIES_ANSWER = "4: `queued` carries the newest answer on record"
    ANSWER_READ_IN_TRANSACTION = "4: the answer is read inside the transaction that opens"
    APPEND_IN_ROWS_EPOCH = "6: sequence 0 is appended with the epoch its row was opened in"

    EPOCH_ON_EVERY_APPEND = "7: every append carries the epoch its writer last saw"
    EPOCH_CHANGES_ON_RESTART = "7: a restart changes the epoch, even if only the last entries were lost"
    OLDER_IS_FENCED = "8: an attempt below the newest is FENCED"
    OTHER_BODY_CONFLICTS = "8: the same key with another body is CONFLICT, not DUPLICATE"
    CLOSED_BEYOND_CLOSING = "8: beyond the closing event nothing is accepted"
    OPENING_PERSISTS = "9: sequence 0 makes an expiring stream last again"
    ONLY_NEWEST_GOES_ON = "10: events above sequence 0 need their attempt to be the newest"
    TAIL_ABOVE_NEWEST = "10: a tail is accepted above the newest attempt"
    CLAIM_NEEDS_OPENING = "11: a claim needs its attempt's sequence 0 in the stream"
    CLAIM_NEEDS_EPOCH = "11: a claim needs a sequence 0 that was opened in this epoch"

    NONCE_IN_CLAIM = "12: a claim's body is new with each delivery of the task"
    OWN_DUPLICATE_OWNS = "13: DUPLICATE of one's own nonce is ownership: only the reply was lost"
    REPLY_BRINGS_STREAM = "14: an accepted claim returns the stream, and any answer in it is reused"
    ACK_WHEN_ALL_ON_RECORD = "15: the task is acknowledged when all its events are on record"
    STOP_ON_REFUSAL = "16: FENCED, CLOSED or CONFLICT: stop and drop"
    TAIL_OUTLIVES_ACK = "17: a tail is kept after the ack until Postgres has the attempt"
    DROP_UNCLAIMED_ON_EPOCH = "18: on EPOCH, tasks not claimed yet are dropped"
    UNANSWERED_CLAIM_ASKED_AGAIN = (
        "18: on EPOCH, a claim of unknown fate is sent again: its nonce shows whether it was accepted"
    )
    TAIL_PUT_BACK = "18: on EPOCH, the kept tail is appended again"
    TAIL_WHOLE_OR_NOT = "18: a tail is appended in one call, whole or not at all"

    ROWS_ATTEMPT_ONLY = "19: storage applies events of the row's attempt only"
    CONTIGUOUS_LEGAL_PREFIX = "19: storage applies what is contiguous and legal"
    COMPARE_AND_SET = "19: the row moves by compare-and-set on (attempt, sequence)"
    UNIQUE_KEY = "19: a key is inserted once"
    GAP_IS_BRIDGED = "20: a gap with a closing event beyond it is bridged"
    EXPIRE_UNLESS_NEWER = "21: an ended stream expires only if no newer attempt is in it"
    EXPIRY_OUTLASTS_STALLS = "21: the expiry exceeds any stall of a coordinator"

    CLOSING_LEFT_TO_STORAGE = "22: an attempt closed in the stream is left to storage"
    RETRY_WHEN_DUE = "22: `retrying` that is due opens the next attempt"
    DEAD_OWNER_REPLACED = "22: a dead owner's attempt is followed by the next"
    LOST_EPOCH_REPLACED = "23: unclaimed and of a lost epoch: open the next attempt"
    LOST_CLAIM_REPLACED = "23: claimed in Postgres and not in the stream: open the next attempt"
    MISSING_OPENING_PUBLISHED = "23: sequence 0 missing in the stream: publish it"
    DRAINED_QUEUE_REFILLED = "23: unclaimed and the queue drained: enqueue again"
    GRACE_AFTER_LOSS = "24: after a loss every `queued` opening waits for those who may put tails back"
    ENDED_OPENING_PUBLISHED = "25: ended at sequence 0 and not published: publish again"

    def __str__(self) -> str:
        return self.value


Rules = frozenset[Rule]
EVERY_RULE: Rules = frozenset(Rule)
