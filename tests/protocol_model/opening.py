"""How an attempt is opened and made known: transaction, append, enqueue, mark (rules 2 to 6)."""

from collections.abc import Iterator
from typing import NamedTuple

from eventlog.lifecycle import OPENINGS, SETTLED
from tests.protocol_model.faults import Budget, Fault
from tests.protocol_model.invariants import brings_answer, broken_by_opening
from tests.protocol_model.moves import Actor, Move, Setup, step
from tests.protocol_model.redis import append
from tests.protocol_model.rules import Rule
from tests.protocol_model.world import Coordinator, Event, Opening, Postgres, Publishing, Stream, Tasks

MOST_TASKS = 3


class Seen(NamedTuple):
    """What a coordinator sees while it carries out what it has decided."""

    setup: Setup
    me: Coordinator
    postgres: Postgres
    stream: Stream
    tasks: Tasks
    epoch: int
    budget: Budget

    def has(self, rule: Rule) -> bool:
        """Whether a rule is in force."""
        return rule in self.setup.rules


def acting_coordinator(setup: Setup) -> Actor:
    """Cast a coordinator as the one who opens and publishes."""
    own = f"coordinator_{setup.slot}"
    sees = (own, "postgres", "stream", "tasks", "epoch", "budget")
    return Actor(sees, lambda *parts: _acts(Seen(setup, *parts)), rests_while_first=(own,))


def _acts(seen: Seen) -> Iterator[Move]:
    match seen.me:
        case Opening():
            yield _commits_if_unchanged(seen, seen.me)
        case Publishing("append"):
            yield _appends(seen, seen.me)
        case Publishing("enqueue"):
            yield _enqueues(seen, seen.me)
        case Publishing():
            yield _marks_published(seen, seen.me)
        case None:
            return
    if Fault.COORDINATOR_CRASH in seen.budget:
        yield step(seen, f"crashes before: {_intent(seen.me)}", me=None, fault=Fault.COORDINATOR_CRASH)


def _intent(me: Opening | Publishing) -> str:
    return f"open attempt {me.following + 1}" if isinstance(me, Opening) else me.step


def _commits_if_unchanged(seen: Seen, opening: Opening) -> Move:
    postgres = seen.postgres
    reopens = postgres.phase in SETTLED if opening.by_operator else not postgres.ended
    unchanged = postgres.attempt == opening.following and reopens
    if not unchanged and seen.has(Rule.ROW_IS_LOCKED):
        return step(seen, "finds the row changed, leaves it", me=None)
    return _commits(seen, opening)


def _commits(seen: Seen, opening: Opening) -> Move:
    postgres, event = seen.postgres, _opening_event(seen, opening)
    following = postgres._replace(
        attempt=event.attempt,
        sequence=0,
        phase=OPENINGS[event.type],
        published=not seen.has(Rule.OPENED_UNPUBLISHED),
        epoch=opening.epoch,
        wish="" if event.type == postgres.wish else postgres.wish,
        log=postgres.log | {event},
    )
    counted = postgres.phase if seen.has(Rule.COUNTERS_FROM_LOCKED_ROW) else opening.phase_as_read
    broken = broken_by_opening(postgres, event, by_operator=opening.by_operator, counted=counted)
    publishing = Publishing("append", event.attempt, opening.epoch)
    return step(seen, f"commits {event}", me=publishing, postgres=following, broken=broken)


def _opening_event(seen: Seen, opening: Opening) -> Event:
    read_now = (
        opening.type == "queued"
        and seen.has(Rule.OPENING_CARRIES_ANSWER)
        and seen.has(Rule.ANSWER_READ_IN_TRANSACTION)
        and brings_answer(seen.postgres.log)
    )
    answer = opening.answer or read_now
    return Event(
        opening.following + 1,
        0,
        opening.type,
        answer=answer,
        because=opening.because,
        epoch=opening.epoch,
    )


def _appends(seen: Seen, me: Publishing) -> Move:
    event = next(event for event in seen.postgres.log if event.key == (me.attempt, 0))
    if me.epoch != seen.epoch and seen.has(Rule.APPEND_IN_ROWS_EPOCH):
        return step(seen, f"appends {event}: EPOCH, stops", me=None)
    answer, stream = append(seen.stream, event, epoch=seen.epoch, rules=seen.setup.rules)
    if not answer.acknowledged:
        return step(seen, f"appends {event}: {answer}, stops", me=None)
    following = me._replace(step="enqueue" if event.type == "queued" else "mark")
    return step(seen, f"appends {event}: {answer}", me=following, stream=stream)


def _enqueues(seen: Seen, me: Publishing) -> Move:
    if len(seen.tasks) >= MOST_TASKS:
        return step(seen, "finds the queue full", me=None)
    tasks = tuple(sorted((*seen.tasks, me.attempt)))
    return step(seen, f"enqueues attempt {me.attempt}", me=me._replace(step="mark"), tasks=tasks)


def _marks_published(seen: Seen, me: Publishing) -> Move:
    is_current = seen.postgres.attempt == me.attempt
    postgres = seen.postgres._replace(published=True) if is_current else seen.postgres
    return step(seen, "marks it published", me=None, postgres=postgres)
