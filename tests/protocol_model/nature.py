"""What no process decides: requests of users, losses, duplicates, and the passing of time."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from tests.protocol_model.faults import Budget, Fault
from tests.protocol_model.invariants import broken_by_expiry
from tests.protocol_model.moves import Actor, Move, Setup, step
from tests.protocol_model.rules import Rule
from tests.protocol_model.world import Coordinator, Postgres, Stream, Tasks


class Seen(NamedTuple):
    """What fate acts on."""

    setup: Setup
    postgres: Postgres
    stream: Stream
    tasks: Tasks
    epoch: int
    budget: Budget


def fate(setup: Setup) -> Actor:
    """Cast what may happen at any time, once for each that the budget grants."""
    sees = ("postgres", "stream", "tasks", "epoch", "budget")
    return Actor(sees, lambda *parts: _strikes(Seen(setup, *parts)))


def _strikes(seen: Seen) -> Iterator[Move]:
    yield from _people_ask(seen)
    if Fault.DUPLICATE_TASK in seen.budget and len(seen.tasks) < 2:
        yield from _a_task_comes_again(seen)
    if Fault.REDIS_LOST in seen.budget and (seen.stream.entries or seen.tasks):
        yield _redis_is_lost(seen)
    if Fault.REDIS_RESTARTED in seen.budget and seen.stream.entries:
        yield from _redis_restarts(seen)


def _people_ask(seen: Seen) -> Iterator[Move]:
    for fault, wish in ((Fault.CANCEL, "cancelled"), (Fault.DEADLINE, "timed_out")):
        if fault in seen.budget and not seen.postgres.ended:
            yield step(seen, f"wishes it {wish}", postgres=seen.postgres._replace(wish=wish), fault=fault)


def _a_task_comes_again(seen: Seen) -> Iterator[Move]:
    for event in sorted(seen.postgres.log):
        if event.type == "queued":
            tasks = tuple(sorted((*seen.tasks, event.attempt)))
            story = f"delivers attempt {event.attempt} once more"
            yield step(seen, story, tasks=tasks, fault=Fault.DUPLICATE_TASK)


def _redis_is_lost(seen: Seen) -> Move:
    return step(
        seen, "loses Redis whole", stream=Stream(), tasks=(), epoch=seen.epoch + 1, fault=Fault.REDIS_LOST
    )


def _redis_restarts(seen: Seen) -> Iterator[Move]:
    """The last entries may be lost, and with them what was put in the queue."""
    entries = seen.stream.entries
    epoch = seen.epoch + (Rule.EPOCH_CHANGES_ON_RESTART in seen.setup.rules)
    for kept, tasks in product(range(len(entries) + 1), {seen.tasks, ()}):
        story = f"restarts Redis with {kept} of {len(entries)} entries"
        story += ", without the queue" * (tasks != seen.tasks)
        stream = seen.stream._replace(entries=entries[:kept])
        yield step(seen, story, stream=stream, tasks=tasks, epoch=epoch, fault=Fault.REDIS_RESTARTED)


class SeenByTime(NamedTuple):
    """What the expiry of a stream depends on."""

    setup: Setup
    postgres: Postgres
    stream: Stream
    coordinator_0: Coordinator
    coordinator_1: Coordinator


def time(setup: Setup) -> Actor:
    """Cast the passing of time, which no path can stop: not a fault."""
    sees = ("postgres", "stream", "coordinator_0", "coordinator_1")
    return Actor(sees, lambda *parts: _passes(SeenByTime(setup, *parts)))


def _passes(seen: SeenByTime) -> Iterator[Move]:
    stalled = seen.coordinator_0 or seen.coordinator_1
    waits = stalled and Rule.EXPIRY_OUTLASTS_STALLS in seen.setup.rules
    if seen.stream.expiring and not waits:
        broken = broken_by_expiry(seen.postgres, seen.stream)
        yield step(seen, "lets the stream go", stream=Stream(), broken=broken)
