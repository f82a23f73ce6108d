"""Any sequence of operations on a few evaluations, compared with a naive model."""

import logging
from collections.abc import Iterator
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize, invariant, precondition, rule

from eventlog import payloads as p
from eventlog.event_queue import AttemptLost
from projections.folds.progress import Progress
from tests.builders import history
from tests.simulation.checker import retraced_all
from tests.simulation.machine_base import TIMEOUT, WORKERS, MachineBase, Owner
from tests.simulation.naive_model import ENDED

LIFE = "queued provisioning running responded scored completed"
picks = st.integers(0, 1_000_000)


class Evaluations(MachineBase):
    """The operations, and the invariants that hold after each."""

    @initialize()
    def begin(self) -> None:
        """Start with one submitted evaluation, and one of a foreign writer."""
        self.start()
        self.submit()
        self.appear(attempts=2)

    # Writers that follow the protocol.

    @rule()
    def submit(self) -> None:
        """The coordinator opens a new evaluation."""
        key = f"e{len(self.model.redis)}"
        self.model.submit(key)
        self.open_next(key, "queued")

    @precondition(lambda self: self.ours())
    @rule(number=picks, word=st.sampled_from(["queued:lost", "queued:operator", "cancelled", "timed_out"]))
    def lease_expires(self, number: int, word: str) -> None:
        """The coordinator replaces an owner, cancels, or reopens: the reader decides."""
        key = self.pick(self.ours(), number)
        if not self.model.is_over(key):
            self.open_next(key, word)

    @precondition(lambda self: self.ours())
    @rule(number=picks, by=st.integers(0, 1))
    def claim(self, number: int, by: int) -> None:
        """An executor claims the newest attempt: it is granted if it has no owner."""
        key = self.pick(self.ours(), number)
        attempt = max(1, self.model.newest(key))
        self.claims += 1
        wanted = p.Provisioning(executor=f"executor-{by}", nonce=f"{self.claims}")
        granted = self.model.may_be_claimed(key)
        try:
            claimed = self.ask(self.queues[by], key, attempt, wanted)
        except AttemptLost:
            assert not granted
            return
        assert granted
        recorded = claimed.attempt._buffer.tail[0].event
        self.owners.append(Owner(key, attempt, by, claimed.attempt, [recorded]))
        self.arrive(key, recorded)

    @precondition(lambda self: self.owners)
    @rule(number=picks, steps=st.lists(picks, min_size=1, max_size=4))
    def emit(self, number: int, steps: list[int]) -> None:
        """An owner records a legal event; the fence accepts or refuses it."""
        owner = self.pick(self.owners, number)
        for step in steps:
            if owner in self.owners:
                self.emit_one(owner, step)

    @rule(number=st.integers(0, 1))
    def crash(self, number: int) -> None:
        """An executor crashes, and is restarted under another name."""
        for task in self.queues[number]._tasks:
            task.cancel()
        self.owners = [owner for owner in self.owners if owner.queue != number]
        self.start_queue(number)

    # Writers that do not, and the network.

    @rule(attempts=st.integers(1, 2))
    def appear(self, attempts: int) -> None:
        """A foreign writer has an evaluation to write, with plain XADDs."""
        key = f"s{len(self.model.redis)}"
        self.model.submit(key)
        self.strangers[key] = [
            *history(LIFE if attempts == 1 else "queued provisioning retrying", evaluation_id=key),
            *(history(LIFE, evaluation_id=key, attempt=2) if attempts == 2 else []),
        ]

    @precondition(lambda self: any(self.strangers.values()))
    @rule(number=picks, places=st.lists(st.integers(0, 2), min_size=1, max_size=6), is_lossy=st.booleans())
    def swap_or_drop(self, number: int, places: list[int], is_lossy: bool) -> None:
        """Any of its next events arrives; a lossy network drops the first."""
        key = self.pick([key for key, unsent in self.strangers.items() if unsent], number)
        unsent = self.strangers[key]
        if is_lossy:
            unsent.pop(0)
        for place in places:
            if unsent:
                recorded = unsent.pop(place % len(unsent))
                self.world.xadd(recorded)
                self.arrive(key, recorded)

    @precondition(lambda self: any(self.model.redis.values()))
    @rule(number=picks, is_other=st.booleans())
    def duplicate(self, number: int, is_other: bool) -> None:
        """An entry of a stream is appended again, unchanged or changed."""
        entry = self.pick([e for stream in self.model.redis.values() for e in stream], number)
        recorded = replace(entry.event, source="contradiction") if is_other else entry.event
        self.world.xadd(recorded)
        self.arrive(recorded.evaluation_id, recorded)

    # Servers.

    @rule()
    def flush_redis(self) -> None:
        """Redis loses everything, and live owners append their attempts again."""
        self.world.log.lose_everything()
        for stream in self.model.redis.values():
            stream.clear()
        for number, queue in self.queues.items():
            self.run(queue.release_committed())
            for owner in [owner for owner in self.owners if owner.queue == number]:
                self.put_back(owner)

    # Readers.

    @precondition(lambda self: self.model.redis)
    @rule(worker=st.integers(0, WORKERS - 1), number=picks)
    def store(self, worker: int, number: int) -> None:
        """A worker reads all evaluations, or some."""
        keys = [key for place, key in enumerate(self.model.redis) if number % 2 or number >> place & 2]
        self.run(self.workers[worker].store(keys))
        self.look(keys)

    @rule(worker=st.integers(0, WORKERS - 1))
    def sweep(self, worker: int) -> None:
        """Time passes, and a worker reads all that have not ended."""
        self.world.wait(TIMEOUT * 1.5)
        self.run(self.workers[worker].sweep(unchanged_for=0, page=2))
        self.look(
            [k for k, table in self.model.postgres.items() if table.is_known and table.phase not in ENDED]
        )

    # Invariants.

    @invariant()
    def the_tables_equal_the_model(self) -> None:
        """Every event has its disposition, every history its state, every counter its value."""
        for key, table in self.model.postgres.items():
            assert self.world.verdicts(key) == {k: verdict.value for k, verdict in table.verdicts.items()}
            assert (key in self.world.tables.evaluations) == table.is_known
            assert self.quarantined(key) == table.contradictions
            if table.is_known:
                assert self.world.cursor(key) == (table.attempt, table.sequence, table.phase)
        counted = self.counted()
        assert counted.total == sum(table.is_known for table in self.model.postgres.values())
        for phase in ENDED:
            assert getattr(counted, phase) == self.model.count(phase)
        assert counted.bridged == sum(table.bridges for table in self.model.postgres.values())
        assert counted.retried == sum(table.openings for table in self.model.postgres.values())

    @invariant()
    def rebuilding_gives_the_same(self) -> None:
        """The event table folds to the other tables, and breaks no rule."""
        tables, total = self.world.tables, Progress()
        for key, retraced in retraced_all(tables, self.world.log.shards).items():
            row, change = tables.evaluations[key].row, retraced.change
            assert retraced.broken == []
            assert (row.cursor, row.owner, row.bridged) == (change.after, change.owner, change.bridged)
            assert tables.scorecards.get(key) == change.scorecard
            total += retraced.progress
        assert total == self.counted()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Suppress the warnings of thousands of faults."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


TestEvaluations = Evaluations.TestCase
TestEvaluations.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
