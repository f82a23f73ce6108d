"""An executor from its registration to its shutdown: wiring, loops, graceful drain.

On `stop` it fetches no more tasks, returns those it has not claimed, and lets active attempts run for the
length of the drain. Attempts that are not done by then are interrupted and closed as retries that are not
charged.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from random import Random, SystemRandom

from eventlog.clock import utc_now
from eventlog.event_queue import EventQueue
from eventlog.outage import Outage, OutageBackoff
from eventlog.tasks import end
from executor.ack_buffer import AckBuffer
from executor.admission import Admission, Unlimited
from executor.attempt import AttemptPipeline
from executor.batch_runtime import Factories, RuntimeCache
from executor.budget.admission import BudgetAdmission
from executor.budget.client import BudgetClient
from executor.contract import ExecutionEnvironment
from executor.eligible_batches import EligibleBatches
from executor.failure_streak import FailureStreaks
from executor.heartbeat import Heartbeat
from executor.lanes.client import DeclaredLimits, LaneClient
from executor.lanes.contract import Lanes
from executor.lanes.per_executor import PerExecutorLanes
from executor.lanes.telemetry import LaneMonitor
from executor.scheduler import Scheduler
from executor.settings import ExecutorSettings
from executor.slot_pool import InterruptReason, SlotPool
from executor.telemetry import ExecutorCounters, metrics_of
from taskqueue.batch_registry import BatchRegistry
from taskqueue.budget.contract import BudgetAccounts
from taskqueue.executor_registry import ExecutorInstance, ExecutorRegistry
from taskqueue.tasks import QueueUnavailable, TaskQueue

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything outside an executor: servers, limits, clock, randomness."""

    events: EventQueue
    tasks: TaskQueue
    batch_registry: BatchRegistry
    executor_registry: ExecutorRegistry
    lanes: Lanes | None = None
    budgets: BudgetAccounts | None = None
    admission: Admission | None = None
    """In place of the lanes' own; without either, everything is admitted."""
    now: Callable[[], datetime] = utc_now
    jitter: Callable[[], float] = SystemRandom().random


def new_instance_id(name: str, random: Random) -> str:
    """Name one run of an executor's process; an id is never used again."""
    return f"{name}-{random.getrandbits(32):08x}"


class Executor:
    """Fetches tasks, calls targets, scores answers, and records events."""

    def __init__(
        self,
        ports: Ports,
        settings: ExecutorSettings,
        factories: Factories,
        *,
        instance_id: str,
        environment: ExecutionEnvironment | None = None,
    ) -> None:
        self.instance_id = instance_id
        self.slot_pool = SlotPool(settings.slots)
        self._ports = ports
        self._settings = settings
        self._outage = Outage("task queue")
        self._backoff = OutageBackoff(self._outage)
        self._counters = ExecutorCounters(settings.name)
        self._streaks = FailureStreaks()
        environment = environment or ExecutionEnvironment(slots=settings.slots)
        self._runtimes = RuntimeCache(ports.batch_registry, factories, environment)
        self._batches = EligibleBatches(
            ports.batch_registry,
            ports.tasks,
            slot_pool=self.slot_pool,
            runtimes=self._runtimes,
            eligibility=settings.eligibility,
        )
        self._acks = AckBuffer(
            ports.tasks,
            instance_id,
            linger=settings.timings.ack_linger.total_seconds(),
            outage=self._outage,
            now=ports.now,
        )
        self._live_executors = 1
        self._lane_client: LaneClient | None = None
        self._lane_monitor: LaneMonitor | None = None
        if ports.lanes:
            self._connect_lanes(ports.lanes)
        self._budget = BudgetClient(ports.budgets, holder=instance_id) if ports.budgets else None
        self._pipeline = self._make_pipeline()
        self._scheduler = self._make_scheduler()
        self._heartbeat = self._make_heartbeat()
        self._stop_requested = asyncio.Event()

    def _connect_lanes(self, lanes: Lanes) -> None:
        if self._settings.keeps_lanes_alone:
            lanes = PerExecutorLanes(lanes, lambda: self._live_executors)
        client = LaneClient(lanes, self._runtimes.uses, executor=self.instance_id, limits=self._limits)
        self._lane_client, self._lane_monitor = client, LaneMonitor(lanes, lambda: client.used)

    def _make_pipeline(self) -> AttemptPipeline:
        ports = self._ports
        return AttemptPipeline(
            events=ports.events,
            batch_registry=ports.batch_registry,
            slot_pool=self.slot_pool,
            runtimes=self._runtimes,
            acks=self._acks,
            streaks=self._streaks,
            counters=self._counters,
            backoff=OutageBackoff(self._outage),
            instance_id=self.instance_id,
            process=str(os.getpid()),
            now=ports.now,
            jitter=ports.jitter,
        )

    def _make_scheduler(self) -> Scheduler:
        return Scheduler(
            tasks=self._ports.tasks,
            pipeline=self._pipeline,
            instance_id=self.instance_id,
            slot_pool=self.slot_pool,
            batches=self._batches,
            acks=self._acks,
            admission=self._make_admission(),
            timings=self._settings.timings,
            backoff=OutageBackoff(self._outage),
            streaks=self._streaks,
        )

    def _make_admission(self) -> Admission:
        admission = self._ports.admission or self._lane_client or Unlimited()
        if self._budget:
            return BudgetAdmission(admission, self._budget, self._runtimes, self._batches.has_budget)
        return admission

    def _make_heartbeat(self) -> Heartbeat:
        return Heartbeat(
            registry=self._ports.executor_registry,
            tasks=self._ports.tasks,
            slot_pool=self.slot_pool,
            counters=self._counters,
            backoff=OutageBackoff(self._outage),
            instance=self._instance,
            confirmation=self._ports.events.confirmation,
        )

    @property
    def is_idle(self) -> bool:
        """Whether no task is active, and the queue has confirmed every acknowledgement."""
        return not self.slot_pool and self._acks.is_empty

    def stop(self) -> None:
        """Request a graceful shutdown."""
        self._scheduler.stop()
        self._stop_requested.set()

    async def run(self) -> None:
        """Run until stopped or, with `once`, until no task is left; raises if one of its loops fails."""
        with metrics_of(self._counters, self.slot_pool, is_disconnected=self._is_cut_off):
            await self._run()

    def _is_cut_off(self) -> bool:
        return self._outage.is_under_way or self._ports.events.is_disconnected

    async def _run(self) -> None:
        loops: list[asyncio.Task[None]] = []
        try:
            fetching = asyncio.create_task(self._fetch_tasks())
            loops += [
                fetching,
                asyncio.create_task(self._heartbeat.run(self._settings.timings.heartbeat)),
                asyncio.create_task(self._acks.run()),
                asyncio.create_task(self._refresh_batches()),
            ]
            if self._lane_client and self._lane_monitor:
                loops.append(asyncio.create_task(self._lane_client.run()))
                loops.append(asyncio.create_task(self._lane_monitor.run()))
            if self._budget:
                loops.append(asyncio.create_task(self._budget.run()))
            await self._until_stopped(loops)
            await self._shut_down(fetching)
        finally:
            await end([*loops, *self._pipeline.running])
            await self._runtimes.aclose()

    async def _until_stopped(self, loops: "list[asyncio.Task[None]]") -> None:
        """Wait for `stop`, or for a loop to fail: an executor without one of them would fail silently."""
        stopping = asyncio.create_task(self._stop_requested.wait())
        try:
            await asyncio.wait([stopping, *loops], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end([stopping])
        self.stop()
        for loop in loops:
            if loop.done():
                await loop

    async def _fetch_tasks(self) -> None:
        await self._heartbeat.register(unless=self._stop_requested.is_set)
        logger.info("ready", extra={"executor": self.instance_id, "slots": self._settings.slots})
        await self._scheduler.run()

    async def _refresh_batches(self) -> None:
        while True:
            try:
                await self._refresh_once()
            except QueueUnavailable as error:
                await self._backoff.wait(error)
            else:
                self._backoff.succeeded()
                timings = self._settings.timings
                pause = timings.refresh if self._batches.priorities else timings.idle_refresh
                await asyncio.sleep(pause.total_seconds())

    async def _refresh_once(self) -> None:
        await self._batches.refresh()
        if self._budget:
            self._budget.forget_all_but(self._batches.listed | self.slot_pool.batches)
        if self._lane_client:
            self._lane_client.declare_limits()
        if self._settings.keeps_lanes_alone:
            self._live_executors = len(await self._ports.executor_registry.live())
        if self._settings.once and await self._batches.are_drained():
            self.stop()

    async def _shut_down(self, fetching: "asyncio.Task[None]") -> None:
        """Drain, interrupt the rest, flush acknowledgements, deregister."""
        await fetching
        if self.slot_pool:
            logger.info("draining active tasks", extra={"tasks": len(self.slot_pool)})
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain.total_seconds()):
                await self.slot_pool.empty()
        for task in self.slot_pool:
            task.interrupt(InterruptReason.SHUTDOWN)
        with suppress(TimeoutError, QueueUnavailable):
            async with asyncio.timeout(self._settings.timings.shutdown_grace.total_seconds()):
                await self.slot_pool.empty()
                await self._settle_budget()
                await self._acks.empty()
                await self._heartbeat.deregister()
        logger.info("stopped", extra={"executor": self.instance_id, "left": len(self.slot_pool)})

    async def _settle_budget(self) -> None:
        """Declare the spend before this instance is gone; its reservations end with its calls."""
        if self._budget:
            await self._budget.close()

    def _limits(self) -> DeclaredLimits:
        """Return the limits of running batches and of those with active tasks here; others lapse."""
        return self._runtimes.limits({*self._batches.priorities, *self.slot_pool.batches})

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
            epochs=self._ports.events.confirmed,
        )
