"""An executor's slot: takes a task, claims it, runs, records, closes, acknowledges (rules 12 to 18)."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from eventlog.lifecycle import CLOSED
from tests.protocol_model.faults import Budget, Fault
from tests.protocol_model.invariants import Broken, broken_by_paying
from tests.protocol_model.moves import Actor, Move, Setup, step
from tests.protocol_model.rules import Rule
from tests.protocol_model.world import (
    Event,
    Executor,
    Ledger,
    Postgres,
    Presence,
    SlotState,
    Stream,
    Tasks,
    World,
)


class Seen(NamedTuple):
    """What an executor sees: itself and Redis; the ledger and the budget are the model's own."""

    setup: Setup
    me: Executor
    presence: Presence
    stream: Stream
    tasks: Tasks
    epoch: int
    ledger: Ledger
    budget: Budget

    @property
    def process(self) -> str:
        """The instance id that claims carry and heartbeats prove."""
        return self.presence.process

    def becomes(self, story: str, me: Executor, **changes: Any) -> Move:
        """Make a move of this executor, and publish its new state."""
        return step(self, story, me=me, presence=presence_of(self.setup, me), **changes)

    def event(self, sequence: int, event_type: str) -> Event:
        """Write an event of the attempt at hand."""
        return Event(self.me.attempt, sequence, event_type, self.process)


def _process(setup: Setup, me: Executor) -> str:
    # Two slots of one process share its name.
    return "E" if setup.scenario.one_process else f"E{setup.slot}.{me.instance}"


def presence_of(setup: Setup, me: Executor) -> Presence:
    """Return what the others can know of an executor."""
    holding = me.slot is SlotState.HOLDING
    return Presence(
        _process(setup, me),
        me.epoch,
        keeps_tail=bool(me.tail),
        holding=me.attempt if holding else 0,
        working_on=me.attempt if setup.scenario.time_out and not holding else 0,
    )


def idle(me: Executor, *, tail: tuple[Event, ...] = ()) -> Executor:
    """Put the task down; a nonce that Redis may have seen is not used again."""
    return Executor(tail=tail, epoch=me.epoch, instance=me.instance, delivery=me.delivery + me.asked)


Part = Callable[[Seen], Iterator[Move]]
"""Some of an executor's steps."""


def executor(setup: Setup, *parts_played: Part) -> Actor:
    """Cast an executor in all its parts, but for the letting go of tails."""
    own = f"executor_{setup.slot}", f"presence_{setup.slot}"
    sees = (*own, "stream", "tasks", "epoch", "ledger", "budget")

    def moves(*parts: Any) -> Iterator[Move]:
        seen = Seen(setup, *parts)
        return chain.from_iterable(part(seen) for part in parts_played)

    # Where neither has done anything yet it does not matter who begins.
    twins = ("executor_0", "executor_1") if setup.slot else ()
    return Actor(sees, moves, rests_while_first=twins)


def works(seen: Seen) -> Iterator[Move]:
    """Take, run, score and acknowledge, or crash meanwhile."""
    match seen.me.slot:
        case SlotState.IDLE:
            yield from _takes_a_task(seen)
        case SlotState.RUNNING:
            yield _answers(seen)
            yield from _target_errs(seen)
        case SlotState.SCORING:
            yield _closes(seen, "scores", 4, "completed")
            if Fault.GRADER_ERROR in seen.budget:
                yield _closes(seen, "cannot score", 4, "retrying", fault=Fault.GRADER_ERROR)
        case SlotState.CLOSING:
            yield from _acknowledges(seen)
        case SlotState.HOLDING:
            pass
    yield from _crashes(seen)


def _takes_a_task(seen: Seen) -> Iterator[Move]:
    if seen.me.epoch != seen.epoch:
        return
    for attempt in sorted(set(seen.tasks)):
        at = seen.tasks.index(attempt)
        left = seen.tasks[:at] + seen.tasks[at + 1 :]
        me = seen.me._replace(slot=SlotState.HOLDING, attempt=attempt)
        yield seen.becomes(f"takes the task of attempt {attempt}", me, tasks=left)


def _answers(seen: Seen) -> Move:
    me, ledger = seen.me, seen.ledger
    responded = me._replace(
        slot=SlotState.SCORING, knows_answer=True, outbox=(*me.outbox, seen.event(3, "responded"))
    )
    if me.knows_answer:
        return seen.becomes("reuses the answer", responded)
    paid = ledger._replace(paid=ledger.paid | {me.attempt})
    return seen.becomes(f"PAYS for attempt {me.attempt}", responded, ledger=paid, check=_paid_for_a_reason)


def _paid_for_a_reason(before: World, after: tuple[Any, ...]) -> Broken:
    payer: Executor = after[0]
    return broken_by_paying(before, payer.attempt)


def _target_errs(seen: Seen) -> Iterator[Move]:
    if Fault.TARGET_ERROR in seen.budget:
        yield _closes(seen, "meets an error", 3, "retrying", fault=Fault.TARGET_ERROR)
    if Fault.TARGET_FAILURE in seen.budget:
        yield _closes(seen, "meets a failure", 3, "failed", fault=Fault.TARGET_FAILURE)


def _closes(seen: Seen, story: str, sequence: int, event_type: str, *, fault: Fault | None = None) -> Move:
    outbox = (*seen.me.outbox, seen.event(sequence, event_type))
    return seen.becomes(story, seen.me._replace(slot=SlotState.CLOSING, outbox=outbox), fault=fault)


def _acknowledges(seen: Seen) -> Iterator[Move]:
    me, rules = seen.me, seen.setup.rules
    if me.epoch != seen.epoch or (me.outbox and Rule.ACK_WHEN_ALL_ON_RECORD in rules):
        return
    kept = me.tail if Rule.TAIL_OUTLIVES_ACK in rules else ()
    yield seen.becomes("acknowledges its task", idle(me, tail=kept))


def _crashes(seen: Seen) -> Iterator[Move]:
    me = seen.me
    if Fault.EXECUTOR_CRASH not in seen.budget or (me.slot is SlotState.IDLE and not me.tail):
        return
    # The queue gives an unacknowledged task to another, if it is still the queue that gave it.
    returned = (me.attempt,) if me.slot is not SlotState.IDLE and me.epoch == seen.epoch else ()
    reborn = Executor(epoch=seen.epoch, instance=me.instance + 1)
    tasks = tuple(sorted(seen.tasks + returned))
    mourned = seen.ledger._replace(paid=seen.ledger.paid - {me.attempt, *(e.attempt for e in me.tail)})
    story = f"crashes while {me.slot.value}"
    yield seen.becomes(story, reborn, tasks=tasks, ledger=mourned, fault=Fault.EXECUTOR_CRASH)


class SeenWithMark(NamedTuple):
    """What an executor sees of Postgres: the committed mark beside its stream."""

    setup: Setup
    me: Executor
    presence: Presence
    postgres: Postgres


def releasing_executor(setup: Setup) -> Actor:
    """Cast an executor as the one who lets its tail go once Postgres has the attempt (rule 17)."""
    sees = (f"executor_{setup.slot}", f"presence_{setup.slot}", "postgres")
    return Actor(sees, lambda *parts: _lets_go(SeenWithMark(setup, *parts)))


def _lets_go(seen: SeenWithMark) -> Iterator[Move]:
    me, postgres = seen.me, seen.postgres
    if me.slot is not SlotState.IDLE or not me.tail:
        return
    attempt = me.tail[0].attempt
    if postgres.attempt > attempt or (postgres.attempt == attempt and postgres.phase in CLOSED):
        presence = seen.presence._replace(keeps_tail=False)
        yield step(seen, "lets its tail go", me=me._replace(tail=()), presence=presence)
