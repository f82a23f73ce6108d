"""The coordinator's reconcile: one decision from the row, the stream, who is alive, and the epoch.

Rules 22 to 25. What is decided here is carried out step by step in `opening.py`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from eventlog.lifecycle import CLOSING_TYPES, SETTLED, Phase
from tests.protocol_model.faults import Budget, Fault
from tests.protocol_model.invariants import Invariant, brings_answer
from tests.protocol_model.moves import Actor, Move, Setup, step
from tests.protocol_model.rules import Rule
from tests.protocol_model.world import (
    Coordinator,
    Event,
    Opening,
    Postgres,
    Presence,
    Publishing,
    Stream,
    Tasks,
)

MOST_ATTEMPTS = 6
PROVIDER = "provider"
"""Who claims an attempt that waits for a provider's batch."""


class Seen(NamedTuple):
    """What a coordinator sees."""

    setup: Setup
    me: Coordinator
    postgres: Postgres
    stream: Stream
    tasks: Tasks
    epoch: int
    budget: Budget
    presence_0: Presence
    presence_1: Presence

    def has(self, rule: Rule) -> bool:
        """Whether a rule is in force."""
        return rule in self.setup.rules

    @property
    def presences(self) -> tuple[Presence, Presence]:
        """The executors, as far as they can be seen."""
        return self.presence_0, self.presence_1

    @property
    def someone_may_return(self) -> bool:
        """Whether the grace is running: an executor with a tail has not reconnected since the loss.

        An attempt that was opened in the current epoch has lost nothing, and its opening waited already.
        """
        if self.postgres.epoch == self.epoch:
            return False
        waits = any(each.keeps_tail and each.epoch != self.epoch for each in self.presences)
        return waits and self.has(Rule.GRACE_AFTER_LOSS)


def deciding_coordinator(setup: Setup) -> Actor:
    """Let a coordinator decide; it does so only when it has no pending step."""
    own = f"coordinator_{setup.slot}"
    sees = (own, "postgres", "stream", "tasks", "epoch", "budget", "presence_0", "presence_1")
    # Where both are idle it does not matter who decides.
    twins = ("coordinator_0", "coordinator_1") if setup.slot else ()
    return Actor(sees, lambda *parts: _reconciles(Seen(setup, *parts)), (own,), twins)


def _reconciles(seen: Seen) -> Iterator[Move]:
    """Return what the evaluation needs next, if anything."""
    attempt = seen.stream.attempt(seen.postgres.attempt)
    if seen.postgres.ended:
        yield from _after_the_end(seen)
    elif not _is_left_to_storage(seen, attempt):
        if seen.postgres.wish:
            yield _opens_closed(seen)
        yield from _goes_on(seen, attempt)


def _after_the_end(seen: Seen) -> Iterator[Move]:
    postgres = seen.postgres
    if not postgres.published and postgres.sequence == 0 and seen.has(Rule.ENDED_OPENING_PUBLISHED):
        yield _publishes(seen, "finds the end unpublished", epoch=seen.epoch)
    if postgres.phase in SETTLED and Fault.OPERATOR_RETRY in seen.budget and not seen.someone_may_return:
        yield _opens(seen, "is asked to retry", fault=Fault.OPERATOR_RETRY, by_operator=True)


def _is_left_to_storage(seen: Seen, attempt: dict[int, Event]) -> bool:
    closed = any(event.type in CLOSING_TYPES for event in attempt.values())
    unapplied = closed and seen.postgres.phase is not Phase.RETRYING
    return unapplied and seen.has(Rule.CLOSING_LEFT_TO_STORAGE)


def _goes_on(seen: Seen, attempt: dict[int, Event]) -> Iterator[Move]:
    postgres = seen.postgres
    if postgres.phase is Phase.RETRYING:
        if seen.has(Rule.RETRY_WHEN_DUE):
            yield from _opens_after_grace(seen, "finds a retry due")
    elif seen.setup.scenario.beginning == "provider batch" and postgres.attempt == 1:
        yield from _opens_after_grace(seen, "collects the provider's batch", answer=True)
    elif 1 in attempt:
        yield from _looks_at_owner(seen, attempt[1])
    elif postgres.epoch != seen.epoch and seen.has(Rule.LOST_EPOCH_REPLACED):
        yield from _opens_after_grace(seen, "finds an attempt of a lost epoch")
    elif postgres.phase is not Phase.QUEUED:
        if seen.has(Rule.LOST_CLAIM_REPLACED):
            yield from _opens_after_grace(seen, "finds a claim in Postgres only")
    else:
        yield from _looks_for_the_task(seen, attempt)


def _looks_at_owner(seen: Seen, claim: Event) -> Iterator[Move]:
    process = claim.by.partition("/")[0]
    owner = [each for each in seen.presences if each.process == process]
    at_it = any(claim.attempt in {each.working_on, each.holding} for each in owner)
    if process == PROVIDER:
        return
    if not owner:
        if seen.has(Rule.DEAD_OWNER_REPLACED):
            yield from _opens_after_grace(seen, f"finds {process} dead")
    elif not at_it and seen.setup.scenario.time_out:
        yield from _opens_after_grace(seen, f"finds {process} out of time")
    elif Fault.SUSPICION in seen.budget and not seen.someone_may_return:
        yield _opens(seen, f"takes {process} for dead", fault=Fault.SUSPICION)


def _looks_for_the_task(seen: Seen, attempt: dict[int, Event]) -> Iterator[Move]:
    held = any(each.holding == seen.postgres.attempt for each in seen.presences)
    if 0 not in attempt:
        if seen.has(Rule.MISSING_OPENING_PUBLISHED):
            yield _publishes(seen, "finds the opening missing", epoch=_epoch_to_publish_in(seen))
    elif not seen.tasks and not held:
        if seen.has(Rule.DRAINED_QUEUE_REFILLED):
            again = Publishing("enqueue", seen.postgres.attempt, seen.epoch)
            yield step(seen, "finds the queue drained", me=again)
    elif not seen.postgres.published:
        yield _publishes(seen, "finds the opening unpublished", epoch=_epoch_to_publish_in(seen))


def _epoch_to_publish_in(seen: Seen) -> int:
    return seen.postgres.epoch if seen.has(Rule.APPEND_IN_ROWS_EPOCH) else seen.epoch


def _publishes(seen: Seen, why: str, *, epoch: int) -> Move:
    return step(seen, f"{why}: publishes", me=Publishing("append", seen.postgres.attempt, epoch))


def _opens_closed(seen: Seen) -> Move:
    """Cancel and time-out do not wait."""
    return _opens(seen, f"is asked for {seen.postgres.wish}", event_type=seen.postgres.wish)


def _opens_after_grace(seen: Seen, why: str, *, answer: bool = False) -> Iterator[Move]:
    if not seen.someone_may_return:
        yield _opens(seen, why, answer=answer)
    elif Fault.GRACE_TOO_SHORT in seen.budget:
        yield _opens(seen, f"{why}, waits too little", answer=answer, fault=Fault.GRACE_TOO_SHORT)


def _opens(
    seen: Seen,
    why: str,
    *,
    event_type: str = "queued",
    answer: bool = False,
    by_operator: bool = False,
    fault: Fault | None = None,
) -> Move:
    postgres = seen.postgres
    if postgres.attempt >= MOST_ATTEMPTS:
        return step(
            seen, f"{why}: too many attempts", fault=fault, broken=(Invariant.ATTEMPTS_ARE_BOUNDED,)
        )
    on_record = brings_answer(postgres.log) or brings_answer(seen.stream.entries)
    carries = answer or (on_record and seen.has(Rule.OPENING_CARRIES_ANSWER))
    opening = Opening(
        postgres.attempt,
        event_type,
        by_operator,
        carries and event_type == "queued",
        fault if fault in {Fault.SUSPICION, Fault.GRACE_TOO_SHORT} else "",
        seen.epoch,
        postgres.phase,
    )
    return step(seen, f"{why}: will open attempt {postgres.attempt + 1}", me=opening, fault=fault)
