"""A foreign writer with plain XADDs, and faults of the network that its events pass."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from eventlog.codec import MAX_EVENT_BYTES
from eventlog.events import Event
from tests.builders import event as make
from tests.builders import raw_entry
from tests.disordered import arrivals, in_order, lives
from tests.simulation.world import World

HUGE = b'{"type": "' + b"x" * MAX_EVENT_BYTES + b'"}'
KINDS = ("dropped", "dropped", "doubled", "contradicted", "garbled", "contrary", "illegal")


@dataclass(slots=True)
class Stranger:
    """Some evaluations that were never submitted."""

    world: World
    written: dict[str, list[Event]] = field(default_factory=dict)
    """The intended events of each evaluation."""
    touched: set[str] = field(default_factory=set)
    """Evaluations whose events met a fault of the network."""

    async def write(self, *, until: float) -> None:
        """Write some histories, reordered as a network may, within the time given."""
        world = self.world
        planned = lives(world.random, most=world.faults.strangers)
        for each in in_order(planned):
            self.written.setdefault(each.evaluation_id, []).append(each)
        arriving = [sent for each in arrivals(world.random, planned) for sent in self._mutated(each)]
        for evaluation_id, fields in arriving:
            if world.clock() < until:
                await asyncio.sleep(world.random.choice((0.0, 0.01, 0.3, 1.0)))
            world.log_line(
                "stranger", f"xadd {evaluation_id} {b' '.join(fields[:6]).decode(errors='replace')}"
            )
            world.redis.xadd(evaluation_id, fields)
            world.redis.wake(evaluation_id)

    def _mutated(self, event: Event) -> Iterator[tuple[str, list[bytes]]]:
        """Send an event, or what a fault makes of it."""
        world, key = self.world, event.evaluation_id
        if not world.chance(world.faults.mutations):
            yield key, fields(event)
            return
        kind = world.random.choice(KINDS)
        self.touched.add(key)
        world.seen[f"stranger: {kind}"] += 1
        match kind:
            case "dropped":
                return
            case "doubled":
                yield key, fields(event)
                yield key, fields(event)
            case "contradicted":
                yield key, fields(event)
                yield key, fields(replace(event, source="contradiction"))
            case "garbled":
                yield key, fields(event, event=HUGE if world.chance(0.05) else b"\xff{")
            case "contrary":
                yield key, fields(event, sequence=b"77")
            case "illegal":
                yield key, fields(event)
                yield key, fields(out_of_place(event))


def out_of_place(event: Event) -> Event:
    """Make an event that conflicts with the history, or follows its end."""
    word = "running" if event.type != "provisioning" else "scored"
    return make(
        word,
        evaluation_id=event.evaluation_id,
        batch_id=event.batch_id,
        attempt=event.attempt,
        sequence=event.sequence + 1,
        source="out of place",
    )


def fields(event: Event, /, **instead: bytes) -> list[bytes]:
    """Encode an event as the fields of its entry."""
    return list(raw_entry(event, **instead)[1])
