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
from executor.ack_buffer import AckBuffer
from executor.admission import Admission, Unlimited
from executor.batch_runtime import Factories, RuntimeCache
from executor.budget.admission import BudgetAdmission
from executor.budget.client import BudgetClient
from executor.claiming import Claiming
from executor.contract import ExecutionEnvironment
from executor.eligible_batches import EligibleBatches
from executor.evaluation import Evaluating
from executor.failure_streak import FailureStreaks
from executor.heartbeat import Heartbeat
from executor.lanes.client import DeclaredLimits, LaneClient
from executor.lanes.contract import Lanes
from executor.lanes.per_executor import PerExecutorLanes
from executor.lanes.telemetry import LaneMonitor
from executor.outage import Outage, OutageBackoff
from executor.scheduler import Scheduler
from executor.settings import ExecutorSettings
from executor.slot_pool import InterruptReason, SlotPool
from executor.telemetry import ExecutorCounters, at_work
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
        factories: Factories,
        *,
        instance_id: str,
        environment: ExecutionEnvironment | None = None,
        admission: Admission | None = None,
        lanes: Lanes | None = None,
        budgets: BudgetAccounts | None = None,
        now: Callable[[], datetime] = utc_now,
        jitter: Callable[[], float],
    ) -> None:
        timings, outage, streaks = settings.timings, Outage(), FailureStreaks()
        self.instance_id = instance_id
        self.slot_pool = SlotPool(settings.slots)
        self._settings = settings
        self._counters = ExecutorCounters(settings.name)
        self._is_cut_off = lambda: outage.is_under_way or ports.events.is_cut_off
        self._executor_registry = ports.executor_registry
        self._events = ports.events
        self._runtimes = RuntimeCache(
            ports.batch_registry, factories, environment or ExecutionEnvironment(slots=settings.slots)
        )
        self._batches = EligibleBatches(
            ports.batch_registry,
            ports.tasks,
            hands=self.slot_pool,
            runtimes=self._runtimes,
            eligibility=settings.eligibility,
        )
        self._acks = AckBuffer(
            ports.tasks, instance_id, linger=timings.ack_linger.total_seconds(), outage=outage, now=now
        )
        self._company = 1
        if lanes and settings.keeps_lanes_alone:
            lanes = PerExecutorLanes(lanes, lambda: self._company)
        self._lane_book = (
            LaneClient(lanes, self._runtimes.uses, executor=instance_id, limits=self._limits)
            if lanes
            else None
        )
        self._lane_watch = LaneMonitor(lanes, self._used_lanes) if lanes else None
        admission = admission or self._lane_book or Unlimited()
        self._budget = BudgetClient(budgets, holder=instance_id) if budgets else None
        if self._budget:
            admission = BudgetAdmission(admission, self._budget, self._runtimes, self._batches.has_budget)
        self._claiming = Claiming(
            ports.events,
            instance_id=instance_id,
            hands=self.slot_pool,
            runtimes=self._runtimes,
            evaluating=Evaluating(
                ports.batch_registry, process=str(os.getpid()), worker=instance_id, now=now, jitter=jitter
            ),
            counters=self._counters,
            acks=self._acks,
            outage=outage,
            streaks=streaks,
        )
        self._scheduler = Scheduler(
            ports.tasks,
            self._claiming,
            instance_id=instance_id,
            hands=self.slot_pool,
            watch=self._batches,
            acks=self._acks,
            admission=admission,
            timings=timings,
            outage=outage,
            streaks=streaks,
        )
        self._heartbeat = Heartbeat(
            ports.executor_registry,
            ports.tasks,
            self.slot_pool,
            instance=self._instance,
            outage=outage,
            counters=self._counters,
            confirmation=ports.events.confirmation,
        )
        self._backoff = OutageBackoff(outage, longest=1.0)
        self._told_to_stop = asyncio.Event()

    def stop(self) -> None:
        """Ask for an end in good order."""
        self._scheduler.stop()
        self._told_to_stop.set()

    async def run(self) -> None:
        """Work until told to stop or, if so set, until nothing is left; raises if a part of it breaks."""
        with at_work(self._counters, self.slot_pool, is_cut_off=self._is_cut_off):
            await self._run()

    async def _run(self) -> None:
        loops: list[asyncio.Task[None]] = []
        try:
            taking = asyncio.create_task(self._take_tasks())
            loops += [
                taking,
                asyncio.create_task(self._heartbeat.run(self._settings.timings.heartbeat)),
                asyncio.create_task(self._acks.run()),
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
            await self._runtimes.aclose()

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
                await self._batches.look()
                if self._budget:
                    self._budget.forget_all_but(self._batches.listed | self.slot_pool.batches)
                if self._lane_book:
                    self._lane_book.declare_limits()
                if self._settings.keeps_lanes_alone:
                    self._company = len(await self._executor_registry.live())
                if self._settings.once and await self._batches.nothing_left():
                    self.stop()
            except QueueUnavailable as error:
                await self._backoff.wait(error)
            else:
                self._backoff.succeeded()
                timings = self._settings.timings
                pause = timings.refresh if self._batches.priorities else timings.idle_refresh
                await asyncio.sleep(pause.total_seconds())

    async def _finish(self, taking: "asyncio.Task[None]") -> None:
        await taking
        if self.slot_pool:
            logger.info("finishing what is in hand", extra={"tasks": len(self.slot_pool)})
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain.total_seconds()):
                await self.slot_pool.empty()
        for hand in self.slot_pool:
            hand.interrupt(InterruptReason.SHUTDOWN)
        with suppress(TimeoutError, QueueUnavailable):
            async with asyncio.timeout(self._settings.timings.shutdown_grace.total_seconds()):
                await self.slot_pool.empty()
                await self._declare_budgets()
                await self._acks.empty()
                await self._heartbeat.leave()
        logger.info("stopped", extra={"executor": self.instance_id, "left": len(self.slot_pool)})

    async def _declare_budgets(self) -> None:
        """Declare what was spent before this instance is gone; its reservations end with its calls."""
        if self._budget:
            await self._budget.close()

    def _limits(self) -> DeclaredLimits:
        """Return the limits of batches that run, or have work in hand here; those of others lapse."""
        return self._runtimes.limits({*self._batches.priorities, *self.slot_pool.batches})

    def _used_lanes(self) -> list[str]:
        return self._lane_book.used if self._lane_book else []

    def _instance(self) -> ExecutorInstance:
        return ExecutorInstance(
            instance_id=self.instance_id,
            name=self._settings.name,
            host=socket.gethostname(),
            pid=os.getpid(),
            slots=self._settings.slots,
            busy=self.slot_pool.busy,
            project=self._settings.eligibility.project,
            labels=tuple(sorted(self._settings.eligibility.labels)),
            run_id=self._settings.eligibility.run_id,
            epochs=self._events.confirmed,
        )
