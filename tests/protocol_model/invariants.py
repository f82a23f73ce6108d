"""What must never be seen, each a promise to users."""

from collections.abc import Iterable
from enum import Enum

from eventlog.lifecycle import FINAL, Phase
from tests.protocol_model.world import Applying, Event, Executor, Postgres, Stream, World


class Invariant(Enum):
    """A promise that a move can break, or a state from which it can no longer be kept."""

    __hash__ = object.__hash__

    ENDS = "from every state a way without faults leads to the end"
    CLEANS_UP = "from every state a way leads on to idle executors and a published end that may expire"
    ATTEMPTS_ARE_BOUNDED = "attempts are opened for a reason, so there are few"
    KEY_APPLIED_ONCE = "an event is applied once, an attempt opened once"
    COUNTERS_MATCH_ROW = "counters move from the phase that the row has"
    CONTIGUOUS_OR_BRIDGED = "only contiguous, legal histories move the row, but for a bridged gap"
    ONE_OWNER = "an attempt has one owner"
    ONE_WRITER = "what is applied of an attempt was written by one executor"
    FENCED_CHANGES_NOTHING = "an event of another attempt than the row's is not applied"
    NO_CLAIM_OF_THE_DEAD = "once a newer attempt, or the end, is published, no claim is accepted"
    RECORDED_ANSWER_REUSED = "an answer in the stream or in Postgres is not paid for again"
    KEPT_ANSWER_AWAITED = "an answer that a live executor keeps is not paid for again"
    PAID_AGAIN_FOR_A_REASON = "payment happens twice only in the documented ways"
    LIVE_STREAM_LASTS = "a stream in use does not expire"
    FINAL_IS_FINAL = "what is completed or cancelled stays so, what is settled until an operator asks"

    def __str__(self) -> str:
        return self.value


Broken = tuple[Invariant, ...]


def brings_answer(events: Iterable[Event]) -> bool:
    """Whether an answer is on record in these events."""
    return any(event.brings_answer for event in events)


def broken_by_applying(postgres: Postgres, planned: Applying, following: Postgres) -> Broken:
    """Judge a storage worker's transaction."""
    inserts, known = planned.inserts, {event.key for event in postgres.log}
    writers = {_process(e.by) for e in following.log if e.attempt == following.attempt and e.sequence}
    found = {
        Invariant.KEY_APPLIED_ONCE: any(event.key in known for event in inserts),
        Invariant.FENCED_CHANGES_NOTHING: any(event.attempt != postgres.attempt for event in inserts),
        Invariant.FINAL_IS_FINAL: postgres.ended,
        Invariant.ONE_WRITER: len(writers) > 1,
        Invariant.CONTIGUOUS_OR_BRIDGED: not (planned.over_a_gap or _is_contiguous(planned)),
    }
    return tuple(invariant for invariant, is_broken in found.items() if is_broken)


def broken_by_opening(postgres: Postgres, opening: Event, *, by_operator: bool, counted: Phase) -> Broken:
    """Judge a coordinator's transaction; `counted` is the phase that the counters are moved from."""
    ended = postgres.phase in FINAL or (postgres.ended and not by_operator)
    found = {
        Invariant.KEY_APPLIED_ONCE: any(event.key == opening.key for event in postgres.log),
        Invariant.FINAL_IS_FINAL: ended,
        Invariant.COUNTERS_MATCH_ROW: counted != postgres.phase,
    }
    return tuple(invariant for invariant, is_broken in found.items() if is_broken)


def broken_by_claim(before: World, claimed: Executor, other: Executor) -> Broken:
    """Judge an accepted claim: was the attempt alive and free, and did the claimant get the answer?"""
    stream, postgres = before.stream, before.postgres
    forgets = not claimed.knows_answer
    on_record = brings_answer(stream.entries) or brings_answer(postgres.log)
    kept = brings_answer(other.tail) and other.epoch != before.epoch
    found = {
        Invariant.ONE_OWNER: claimed.attempt in before.ledger.owned,
        Invariant.NO_CLAIM_OF_THE_DEAD: _is_dead(before, claimed.attempt),
        Invariant.RECORDED_ANSWER_REUSED: forgets and on_record,
        Invariant.KEPT_ANSWER_AWAITED: forgets and kept and not on_record,
    }
    return tuple(invariant for invariant, is_broken in found.items() if is_broken)


def broken_by_paying(before: World, attempt: int) -> Broken:
    """Judge a payment: if there was another, the earlier attempt must have an excuse.

    That its owner died is excuse enough, and no longer in the ledger. Else the attempt after it was
    opened on a false suspicion, too soon after a loss, or because its time was out.
    """
    others = before.ledger.paid - {attempt}
    excused = all(_was_cut_off(before.postgres, min(attempt, other)) for other in others)
    return () if excused else (Invariant.PAID_AGAIN_FOR_A_REASON,)


def _was_cut_off(postgres: Postgres, attempt: int) -> bool:
    openings = (event for event in postgres.log if event.key == (attempt + 1, 0))
    return any(event.because or event.type == "timed_out" for event in openings)


def broken_by_expiry(postgres: Postgres, stream: Stream) -> Broken:
    """Judge the disappearance of a stream."""
    in_use = not postgres.ended and stream.newest == postgres.attempt
    return (Invariant.LIVE_STREAM_LASTS,) if in_use else ()


def _is_dead(world: World, attempt: int) -> bool:
    over = world.postgres.attempt > attempt or world.postgres.ended
    # A coordinator at work has yet to publish to Redis; until then a claim may succeed.
    printed = world.postgres.published and world.coordinator_0 is None and world.coordinator_1 is None
    return over and printed


def _is_contiguous(planned: Applying) -> bool:
    first = planned.before[1] + 1
    return [event.sequence for event in planned.inserts] == list(range(first, first + len(planned.inserts)))


def _process(by: str) -> str:
    return by.partition("/")[0]
