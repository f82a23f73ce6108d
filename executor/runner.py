"""An executor from its arrival to its farewell.

Told to stop, it takes no more, hands back what it has not claimed, and lets work in hand go on for the
length of the drain. What is not done by then is interrupted and handed back as a retry that costs nothing.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from random import Random

from eventlog.clock import utc_now
from eventlog.event_queue import EventQueue
from eventlog.tasks import end
from executor.admission import Admission, Unlimited
from executor.budget.admission import BudgetAdmission
from executor.budget.client import BudgetClient
from executor.claiming import Claiming
from executor.contract import ExecutionEnvironment
from executor.departures import Departures
from executor.evaluation import Evaluating
from executor.failure_streak import FailureStreaks
from executor.hands import Ending, Hands
from executor.heartbeat import Heartbeat
from executor.kits import Kits, Makers
from executor.lanes.book import DeclaredLimits, LaneBook
from executor.lanes.contract import Lanes
from executor.lanes.per_worker import PerWorkerLanes
from executor.lanes.telemetry import LaneWatch
from executor.outage import Outage, Patience
from executor.scheduler import Scheduler
from executor.settings import ExecutorSettings
from executor.telemetry import Tally, at_work
from executor.watch import Watch
from taskqueue.batch_registry import BatchRegistry
from taskqueue.budget.contract import BudgetAccounts
from taskqueue.executor_registry import ExecutorInstance, ExecutorRegistry
from taskqueue.tasks import QueueUnavailable, TaskQueue

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where an executor's work comes from and goes to."""

    events: EventQueue
    tasks: TaskQueue
    batch_registry: BatchRegistry
    executor_registry: ExecutorRegistry


def new_instance_id(name: str, random: Random) -> str:
    """Name one life of an executor: never used again."""
    return f"{name}-{random.getrandbits(32):08x}"


class Executor:
    """Takes tasks, calls targets, scores, and records what happened."""

    def __init__(  # noqa: PLR0913 - all but the first three are for tests
        self,
        ports: Ports,
        settings: ExecutorSettings,
        makers: Makers,
        *,
        instance_id: str,
        environment: ExecutionEnvironment | None = None,
        admission: Admission | None = None,
        lanes: Lanes | None = None,
        budgets: BudgetAccounts | None = None,
        now: Callable[[], datetime] = utc_now,
        luck: Callable[[], float],
    ) -> None:
        rhythm, outage, streaks = settings.rhythm, Outage(), FailureStreaks()
        self.instance_id = instance_id
        self.hands = Hands(settings.slots)
        self._settings = settings
        self._tally = Tally(settings.name)
        self._is_cut_off = lambda: outage.is_under_way or ports.events.is_cut_off
        self._executor_registry = ports.executor_registry
        self._events = ports.events
        self._kits = Kits(
            ports.batch_registry, makers, environment or ExecutionEnvironment(slots=settings.slots)
        )
        self._watch = Watch(
            ports.batch_registry,
            ports.tasks,
            hands=self.hands,
            kits=self._kits,
            eligibility=settings.eligibility,
        )
        self._departures = Departures(
            ports.tasks, instance_id, linger=rhythm.ack_linger.total_seconds(), outage=outage, now=now
        )
        self._company = 1
        if lanes and settings.keeps_lanes_alone:
            lanes = PerWorkerLanes(lanes, lambda: self._company)
        self._lane_book = (
            LaneBook(lanes, self._kits.uses, executor=instance_id, limits=self._limits) if lanes else None
        )
        self._lane_watch = LaneWatch(lanes, self._used_lanes) if lanes else None
        admission = admission or self._lane_book or Unlimited()
        self._budget = BudgetClient(budgets, holder=instance_id) if budgets else None
        if self._budget:
            admission = BudgetAdmission(admission, self._budget, self._kits, self._watch.has_budget)
        self._claiming = Claiming(
            ports.events,
            instance_id=instance_id,
            hands=self.hands,
            kits=self._kits,
            evaluating=Evaluating(
                ports.batch_registry, process=str(os.getpid()), worker=instance_id, now=now, luck=luck
            ),
            tally=self._tally,
            departures=self._departures,
            outage=outage,
            streaks=streaks,
        )
        self._scheduler = Scheduler(
            ports.tasks,
            self._claiming,
            instance_id=instance_id,
            hands=self.hands,
            watch=self._watch,
            departures=self._departures,
            admission=admission,
            rhythm=rhythm,
            outage=outage,
            streaks=streaks,
        )
        self._heartbeat = Heartbeat(
            ports.executor_registry,
            ports.tasks,
            self.hands,
            instance=self._instance,
            outage=outage,
            tally=self._tally,
            confirmation=ports.events.confirmation,
        )
        self._patience = Patience(outage, longest=1.0)
        self._told_to_stop = asyncio.Event()

    def stop(self) -> None:
        """Ask for an end in good order."""
        self._scheduler.stop()
        self._told_to_stop.set()

    async def run(self) -> None:
        """Work until told to stop or, if so set, until nothing is left; raises if a part of it breaks."""
        with at_work(self._tally, self.hands, is_cut_off=self._is_cut_off):
            await self._run()

    async def _run(self) -> None:
        loops: list[asyncio.Task[None]] = []
        try:
            taking = asyncio.create_task(self._take_tasks())
            loops += [
                taking,
                asyncio.create_task(self._heartbeat.run(self._settings.rhythm.beat)),
                asyncio.create_task(self._departures.run()),
                asyncio.create_task(self._watch_batch_registry()),
            ]
            if self._lane_book and self._lane_watch:
                loops.append(asyncio.create_task(self._lane_book.run()))
                loops.append(asyncio.create_task(self._lane_watch.run()))
            if self._budget:
                loops.append(asyncio.create_task(self._budget.run()))
            await self._until_told_to_stop(loops)
            await self._finish(taking)
        finally:
            await end([*loops, *self._claiming.at_work])
            await self._kits.aclose()

    async def _until_told_to_stop(self, loops: "list[asyncio.Task[None]]") -> None:
        """Wait for the word, or for a loop to break: half an executor would go unnoticed."""
        word = asyncio.create_task(self._told_to_stop.wait())
        try:
            await asyncio.wait([word, *loops], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end([word])
        self.stop()
        for loop in loops:
            if loop.done():
                await loop

    async def _take_tasks(self) -> None:
        await self._heartbeat.arrive(unless=self._told_to_stop.is_set)
        logger.info("ready", extra={"executor": self.instance_id, "slots": self._settings.slots})
        await self._scheduler.run()

    async def _watch_batch_registry(self) -> None:
        while True:
            try:
                await self._watch.look()
                if self._budget:
                    self._budget.forget_all_but(self._watch.listed | self.hands.batches)
                if self._lane_book:
                    self._lane_book.declare_limits()
                if self._settings.keeps_lanes_alone:
                    self._company = len(await self._executor_registry.live())
                if self._settings.once and await self._watch.nothing_left():
                    self.stop()
            except QueueUnavailable as error:
                await self._patience.wait(error)
            else:
                self._patience.rewarded()
                rhythm = self._settings.rhythm
                pause = rhythm.poll if self._watch.priorities else rhythm.idle_poll
                await asyncio.sleep(pause.total_seconds())

    async def _finish(self, taking: "asyncio.Task[None]") -> None:
        await taking
        if self.hands:
            logger.info("finishing what is in hand", extra={"tasks": len(self.hands)})
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain.total_seconds()):
                await self.hands.empty()
        for hand in self.hands:
            hand.interrupt(Ending.SHUTDOWN)
        with suppress(TimeoutError, QueueUnavailable):
            async with asyncio.timeout(self._settings.rhythm.last_words.total_seconds()):
                await self.hands.empty()
                await self._declare_budgets()
                await self._departures.empty()
                await self._heartbeat.leave()
        logger.info("stopped", extra={"executor": self.instance_id, "left": len(self.hands)})

    async def _declare_budgets(self) -> None:
        """Declare what was spent before this instance is gone; its reservations end with its calls."""
        if self._budget:
            await self._budget.close()

    def _limits(self) -> DeclaredLimits:
        """Return the limits of batches that run, or have work in hand here; those of others lapse."""
        return self._kits.limits({*self._watch.priorities, *self.hands.batches})

    def _used_lanes(self) -> list[str]:
        return self._lane_book.used if self._lane_book else []

    def _instance(self) -> ExecutorInstance:
        return ExecutorInstance(
            instance_id=self.instance_id,
            name=self._settings.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            slots=self._settings.slots,
            busy=self.hands.busy,
            project=self._settings.eligibility.project,
            labels=tuple(sorted(self._settings.eligibility.labels)),
            run_id=self._settings.eligibility.run_id,
            epochs=self._events.confirmed,
        )
