"""Faults injected into a run, about once a second."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from eventlog.codec import Entry, read_entry
from eventlog.lifecycle import CLOSING_TYPES
from tests.simulation.executor import Executing
from tests.simulation.foreign import HUGE, fields, out_of_place
from tests.simulation.process import Process
from tests.simulation.world import World


@dataclass(slots=True)
class FaultInjector:
    """Drops, duplicates, reorders, freezes and pollutes, as often as the seed decides."""

    world: World
    executors: Sequence[Executing]
    others: Sequence[Process]

    async def go_on(self, *, until: float) -> None:
        """Inject faults until the time given."""
        faults = self.world.faults
        likely: list[tuple[float, Callable[[], None]]] = [
            (faults.lost_whole, self._lose_everything),
            (faults.lost_part, self._lose_a_little),
            (faults.wake_ups, self._disturb_wake_ups),
            (faults.frozen, self._freeze),
            (faults.stopped, self._stop),
            (faults.clock_jumps, self._set_a_clock),
            (faults.pollution, self._pollute),
        ]
        while self.world.clock() < until:
            await asyncio.sleep(self.world.random.uniform(0.3, 1.2))
            for likelihood, act in likely:
                if self.world.chance(likelihood):
                    act()

    def _note(self, what: str) -> None:
        self.world.seen[what] += 1
        self.world.log_line("fault", what)

    def _lose_everything(self) -> None:
        self._note("Redis lost whole")
        self.world.lose_redis()

    def _lose_a_little(self) -> None:
        kept = self.world.redis.remember()

        def lose() -> None:
            self._note("Redis lost in part")
            self.world.lose_redis(kept)

        self.world.loop.call_later(self.world.random.uniform(0.05, 1.0), lose)

    def _disturb_wake_ups(self) -> None:
        random, redis = self.world.random, self.world.redis
        for unread in redis.log.wake_ups:
            match random.choice(("lost", "doubled", "shuffled", "nonsense")):
                case "lost":
                    self._lose_wake_ups(unread)
                case "doubled":
                    unread.extend(list(unread))
                case "shuffled":
                    random.shuffle(unread)
                case _ if self.world.faults.strangers:
                    unread.append("no\nname")

    def _lose_wake_ups(self, unread: list[str]) -> None:
        """Lose wake-ups of evaluations that a sweep can find: an append and its wake-up are one script."""
        evaluations = self.world.tables.evaluations
        kept = [key for key in unread if key not in evaluations or evaluations[key].ended_at]
        if len(kept) < len(unread):
            self._note("wake-ups lost")
            self.world.knowledge.unwoken.update(unread)
            unread[:] = kept

    def _freeze(self) -> None:
        life = self.world.random.choice([*self.executors, *self.others]).life
        life.frozen_until = self.world.clock() + self.world.random.uniform(1.0, 9.0)
        self._note("frozen")
        self.world.log_line(life.name, "stands still")

    def _stop(self) -> None:
        executor = self.world.random.choice(self.executors)
        self._note("asked to stop")
        executor.stop()

    def _set_a_clock(self) -> None:
        executor = self.world.random.choice(self.executors)
        executor.skew = timedelta(seconds=self.world.random.choice((-86_400, -5, 0, 5, 86_400)))
        self._note("clock set")

    def _pollute(self) -> None:
        """Append to a stream of other writers: a duplicate, a conflict, or an invalid entry."""
        world = self.world
        streams = sorted(key for key in world.redis.log._streams if world.redis.stream(key).entries)
        if not streams:
            return
        key = world.random.choice(streams)
        entry = read_entry(key, world.random.choice(world.redis.stream(key).entries))
        if isinstance(entry, Entry) and world.is_ours(entry.event.batch_id):
            self._note("polluted")
            world.redis.xadd(key, self._nonsense(entry))
            world.redis.wake(key)

    def _nonsense(self, entry: Entry) -> list[bytes]:
        event = entry.event
        kinds = ["doubled", "contradicted", "garbled", "misfiled", "no event"]
        kinds += ["beyond the end"] * (event.type in CLOSING_TYPES)
        match self.world.random.choice(kinds):
            case "doubled":
                return fields(event)
            case "contradicted":
                return fields(replace(event, source="intruder"))
            case "garbled":
                return fields(event, event=HUGE if self.world.chance(0.05) else b"{}")
            case "misfiled":
                return fields(replace(event, batch_id="another", source="intruder"))
            case "beyond the end":
                illegal = out_of_place(event)
                self.world.knowledge.foreign_keys.add((event.evaluation_id, illegal.key))
                return fields(illegal)
            case _:
                return [b"no", b"event"]
