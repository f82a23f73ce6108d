"""A real fleet for one run: executors, coordinators of which one leads, and a batch that is handed in.

Storage workers are the world's. All reach the servers through the world's links, and a process that ends
is started again.
"""

import signal
import sys
from collections.abc import Callable
from dataclasses import replace

from coordinator.submission import NewEvaluation, Recall, SerialPlace
from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from projections.ledger.batch import NewBatch
from tests.chaos.answering import RecordedCalls
from tests.chaos.children import Child
from tests.chaos.fleet_checker import check_fleet
from tests.chaos.fleet_members import (
    CoordinatorOrders,
    ExecutorOrders,
    be_coordinator,
    be_executor,
)
from tests.chaos.run import TIMEOUT, Run
from tests.chaos.submitting import Submission, hand_in
from tests.chaos.worker_group import WorkerGroup
from tests.waiting import until

EVALUATIONS = 120
EXECUTORS = 2
COORDINATORS = 2
GROUP = 5
"""Every so many evaluations, one goes on with the conversation of the one before it."""
SPEC = BatchSpec(
    "chaos",
    targets=(TargetSpec("answering", "answering"),),
    evaluators=(EvaluatorSpec("judging", "judging"),),
    retries=50,
)


class Fleet:
    """The fleet of one run."""

    def __init__(self, run: Run) -> None:
        world, home = run.world, run.world.layout.home / run.batch_id
        home.mkdir()
        self.run = run
        self.calls_path = home / "calls"
        self.journals = home
        self.leader_path = home / "leader"
        call_log, log = world.workers.orders.call_log, home / "fleet.log"
        postgres_url = world.workers.orders.postgres_url
        self.submission = Submission(postgres_url, NewBatch(run.batch_id, SPEC), _evaluations())
        self.executors = WorkerGroup(
            ExecutorOrders(world.writers_redis, "", call_log, self.calls_path, home),
            be_executor,
            log,
            kind="executor",
        )
        self.coordinators = WorkerGroup(
            CoordinatorOrders(world.writers_redis, postgres_url, "", call_log, self.leader_path),
            be_coordinator,
            log,
            kind="coordinator",
        )
        self._log = log
        numbers = range(1, len(self.submission.evaluations) + 1)
        run.expected.tokens = (0, sys.maxsize)  # until all calls are recorded
        run.expected.evaluations = {evaluation_id(run.batch_id, number) for number in numbers}

    async def start(self, *, dies: str | None = None, at_call: int = 1) -> None:
        """Have everybody at work until the run has been checked; coordinators perhaps to their death."""
        self.run.stack.push_async_callback(self.executors.dismiss)
        self.run.stack.push_async_callback(self.coordinators.dismiss)
        await self.executors.muster(EXECUTORS, called="executor")
        await self.coordinators.muster(COORDINATORS, called="coordinator", dies=dies, dies_at_call=at_call)

    async def submit(self, *, dies: str | None = None, at_call: int = 1) -> int:
        """Submit the batch in a process that may be killed; returns its exit code."""
        orders = replace(self.submission, dies=dies, dies_at_call=at_call)
        child = Child(hand_in, orders, log=self._log)
        self.run.stack.push_async_callback(child.kill)
        return await child.ended()

    @property
    def recorded(self) -> RecordedCalls:
        """What the target and the judge have written down."""
        return RecordedCalls.read(self.calls_path)

    async def progress(self, share: float) -> None:
        """Wait until so many answers were given; all of them, and the batch may be over."""
        wanted = share * len(self.submission.evaluations)
        await until(lambda: self.recorded.total("answered") >= wanted, TIMEOUT)

    async def moment(self, earliest: float = 0.05, latest: float = 0.6) -> None:
        """Wait for a moment, drawn by lot, at which so much of the batch is done."""
        await self.progress(earliest + self.run.rng.random() * (latest - earliest))

    async def kill_leader(self) -> None:
        """kill -9 the coordinator that leads; another one goes on, be it the next in its place."""
        names = [slot.orders.name for slot in self.coordinators.slots]
        leader = await until(lambda: self._leader_among(names), TIMEOUT)
        await self.coordinators.kill(names.index(leader))

    def _leader_among(self, names: list[str]) -> str:
        name = self.leader_path.read_text() if self.leader_path.exists() else ""
        return name if name in names else ""

    async def kill_executor(self, number: int) -> None:
        """kill -9 an executor that has an active task."""
        await self._with_active_task(number)
        await self.executors.kill(number)

    async def freeze_executor(self, number: int, until_then: Callable[[], object]) -> None:
        """Stop an executor that has an active task until a condition holds, then continue it."""
        await self._with_active_task(number)
        child = await until(lambda: self.executors.slots[number].child, TIMEOUT)
        child.signal(signal.SIGSTOP)
        try:
            await until(until_then, TIMEOUT)
        finally:
            child.signal(signal.SIGCONT)

    async def _with_active_task(self, number: int) -> None:
        """Wait for one; when all is done there is none."""
        name, share = self.executors.slots[number].orders.name, len(self.submission.evaluations)
        await until(
            lambda: self.recorded.active(name) > 0 or self.recorded.total("answered") >= share, TIMEOUT
        )

    async def finish(self, *, acknowledged: bool = True) -> None:
        """Wait until the batch is over, and see whether all is as it should be."""
        await self.run.until_ended()
        if acknowledged:
            for journal in sorted(self.journals.glob("*.journal")):
                self.run.witness.absorb(journal)
        await check_fleet(self.run, self.recorded)


def _evaluations() -> tuple[NewEvaluation, ...]:
    return tuple(_evaluation(number) for number in range(1, EVALUATIONS + 1))


def _evaluation(number: int) -> NewEvaluation:
    asked, place = f"question {number}", None
    expected = asked
    if number % GROUP == 0:
        place = SerialPlace(number - 1, (Recall(number - 1),))
        expected = f"question {number - 1}, {asked}"
    return NewEvaluation(p.Case(id=f"case-{number}", input=asked, expected=expected), serial=place)


async def fleet_of(run: Run) -> Fleet:
    """Start a fleet, and submit its batch."""
    fleet = Fleet(run)
    await fleet.start()
    if code := await fleet.submit():
        run.complaints.append(f"the batch could not be handed in: exit code {code}")
    return fleet
