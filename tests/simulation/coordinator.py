"""The control plane: the real coordinator, and operators whose requests go through it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

from coordinator.acceptance import accept
from coordinator.coordinator import AWAY, Coordinator, CoordinatorPorts
from coordinator.operations import OperationRejected, Operator
from coordinator.settings import CoordinatorSettings
from coordinator.submission import NewEvaluation
from projections.ledger.batch import NewBatch
from projections.ledger.contract import BatchExists
from tests.simulation.control_ports import (
    distant_batch_registry,
    distant_executor_registry,
    distant_ledger,
    distant_queue,
)
from tests.simulation.ports import DistantLog
from tests.simulation.process import Life, Process
from tests.simulation.world import World

GRACE = timedelta(seconds=4)
SETTINGS = CoordinatorSettings(
    window=3,
    page_size=2,
    reconcile_interval=timedelta(seconds=1),
    unchanged_for=timedelta(seconds=0.8),
    grace=GRACE,
    hung_grace=timedelta(seconds=3),
    unregister_delay=timedelta(seconds=2),
)
"""A coordinator with short time-outs and small windows."""


def coordinator_of(life: Life) -> Coordinator:
    """Make a coordinator."""
    ports = CoordinatorPorts(
        DistantLog(life),
        distant_ledger(life),
        distant_queue(life),
        distant_batch_registry(life),
        distant_executor_registry(life),
    )
    return Coordinator(ports, settings=replace(SETTINGS, name=life.name), clock=life.world.clock)


class Coordinating(Process):
    """Runs cycles for ever; no leader election keeps two of them apart."""

    async def main(self, life: Life) -> None:
        """Run cycle after cycle; a failed step is retried in the next."""
        world, coordinator = self.world, coordinator_of(life)
        while True:
            world.going_round.add(life.name)
            world.seen["coordinators overlap"] += len(world.going_round) > 1
            try:
                await coordinator.run_cycle()
            except AWAY as error:
                world.log_line(life.name, f"the round was interrupted: {error}")
            finally:
                world.going_round.discard(life.name)
            await asyncio.sleep(world.random.uniform(0.3, 0.8))


@dataclass(frozen=True, slots=True)
class Submission:
    """A batch that is submitted, and when."""

    at: float
    batch: NewBatch
    evaluations: tuple[NewEvaluation, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """A command on a batch, and when."""

    at: float
    batch_id: str
    verb: str


class People(Process):
    """Submit, pause, resume, cancel and retry; each is tried until it succeeds."""

    def __init__(
        self, world: World, name: str, *, submissions: list[Submission], requests: list[Request]
    ) -> None:
        self.submissions, self.requests = submissions, requests
        super().__init__(world, name)

    @property
    def are_done(self) -> bool:
        """Whether no command is left."""
        return not self.submissions and not self.requests

    async def main(self, life: Life) -> None:
        """Make the requests that are due, one after the other."""
        operator = Operator(distant_ledger(life), coordinator_of(life), life.name)
        while True:
            await asyncio.sleep(self.world.random.uniform(0.1, 0.4))
            now = self.world.clock()
            try:
                for submission in [each for each in self.submissions if each.at <= now]:
                    await self._submit(life, submission)
                for request in [each for each in self.requests if each.at <= now]:
                    await self._ask(operator, request)
            except AWAY as error:
                self.world.log_line(life.name, f"tries again: {error}")

    async def _submit(self, life: Life, submission: Submission) -> None:
        ledger, shards = distant_ledger(life), self.world.redis.log.shards
        try:
            now = await ledger.now()
            await accept(ledger, submission.batch, _one_by_one(submission), now=now, shards=shards)
        except BatchExists:
            self.world.seen["accepted before"] += 1
        if submission in self.submissions:
            self.submissions.remove(submission)

    async def _ask(self, operator: Operator, request: Request) -> None:
        batch_id = request.batch_id
        if any(each.batch.batch_id == batch_id for each in self.submissions):
            return
        self.world.log_line(self.name, f"{request.verb} {batch_id}")
        try:
            match request.verb:
                case "pause":
                    await operator.pause(batch_id)
                case "resume":
                    await operator.resume(batch_id)
                case "cancel":
                    await operator.cancel(batch_id)
                case "retry":
                    await operator.retry(batch_id)
        except OperationRejected as refused:
            self.world.log_line(self.name, str(refused))
            self.world.seen["refused"] += 1
        else:
            self.world.seen[request.verb] += 1
        self.requests.remove(request)


async def _one_by_one(submission: Submission) -> AsyncIterator[NewEvaluation]:
    for one in submission.evaluations:
        yield one
