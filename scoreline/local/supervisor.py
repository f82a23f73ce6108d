"""Supervision of a batch until it is over: its processes, its progress, and the exit code of the command.

The first interrupt (SIGINT, SIGTERM, or SIGHUP when the terminal is lost) pauses the batch, lets executors
finish their claimed tasks, and prints how to resume; the second exits immediately, and all child processes
end with this one. A process that can't start pauses the batch as well. Once the batch is over,
an interrupt pauses nothing: the report, the exports and the exit code are those of a batch that has ended.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar

from rich.console import Console

from domain.ids import FLEET
from eventlog.tasks import end
from scoreline.formatting import printable
from scoreline.invocation import batch_command
from scoreline.local import fleet as fleets
from scoreline.local.dead_executors import is_gone, report_dead
from scoreline.local.fork_server_launch import LaunchedServer
from scoreline.local.interruption import Interruption
from scoreline.local.process_log import last_error, log_of
from scoreline.local.processes import START_ATTEMPTS, Child, ProcessManager, process_manager
from scoreline.local.run_pause import (
    PauseOutcome,
    pause_at_once,
    pause_on_record,
    read_outcome,
    record_unrecorded,
)
from scoreline.local.storage_workers import worker_environ
from scoreline.private_files import default_root, open_private
from scoreline.reports.batch_poller import POLL_INTERVAL, BatchPoller
from scoreline.reports.batch_status import ExitCode, gated_exit_code, is_over
from scoreline.reports.batch_view import BatchView
from scoreline.reports.export import ExportRequest, Output, export_to
from scoreline.reports.fleet_status import FLEET_NOT_READ, fleet_reader
from scoreline.reports.pass_rate import batch_pass_rate
from scoreline.reports.progress_line import ProgressDisplay
from scoreline.reports.stall_reasons import reasons
from scoreline.reports.status import read_full_view, show, view_document
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.startup_interrupt import INTERRUPTED

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

FAILED = 1
DRAIN = 15.0
"""Seconds that executors of a local fleet get to finish their claimed tasks."""
STARTING = 15.0
"""Seconds after which missing executors are reported."""
SHORTEST_POLL = 0.1
"""Seconds between two looks at a batch that has just begun."""
ABANDONED = 2.0
"""Seconds that a cancelled query gets to end."""

Beside = Callable[[ProcessManager], Coroutine[Any, Any, None]]
"""A coroutine that runs beside the supervisor, with the processes of its fleet."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to supervise, and how."""

    batch_id: str
    fleet: fleets.Fleet | None
    """What to start here; None where others do the work."""
    as_json: bool = False
    min_pass_rate: float | None = None
    outputs: tuple[Output, ...] = ()
    """Exports to write at the end, whatever the outcome."""
    beside: Beside | None = None
    launched: LaunchedServer | None = None
    """The fork server of the fleet's processes, if it was launched before."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run is stopped before its batch is over."""

    reason: str
    code: int
    pauses: bool = True
    """Whether the batch is paused with this reason."""


def supervise(
    wanted: RunRequest,
    servers: Servers,
    settings: Settings,
    console: Console,
    interruption: Interruption,
) -> int:
    """Supervise a batch until it is over, and return the exit code."""
    return asyncio.run(BatchSupervisor(wanted, servers, settings, console, interruption).run())


class BatchSupervisor:
    """Supervises one batch until it is over."""

    def __init__(
        self,
        wanted: RunRequest,
        servers: Servers,
        settings: Settings,
        console: Console,
        interruption: Interruption,
    ) -> None:
        self.wanted, self.servers, self.settings, self.console = wanted, servers, settings, console
        self.interruption = interruption
        self.log_path = log_of(settings.data_dir or default_root(), wanted.batch_id)
        self.stop: Stop | None = None
        self._is_over = False
        self._stopping = asyncio.Event()
        self._began = monotonic()
        self._began_by = self._began + STARTING
        self._tasks: set[asyncio.Task[None]] = set()
        self._manager: ProcessManager | None = None

    @property
    def _verbose(self) -> bool:
        """Whether the processes log to this command's standard error instead of to their file."""
        return self.settings.log_level == "DEBUG"

    async def run(self) -> int:
        """Supervise, report, and return the exit code."""
        stopped = await self.until_over()
        return await self._report() if stopped is None else stopped

    async def until_over(self) -> int | None:
        """Supervise until the batch is over; returns an exit code if the run was stopped before."""
        with self.interruption.announced(self._interrupted, self._end_at_once):
            async with AsyncExitStack() as stack:
                await asyncio.sleep(0)  # a signal may have come before
                if self.wanted.fleet and self.stop is None:
                    await self.start(self.wanted.fleet, stack)
                await self._watch()
                pausing = asyncio.create_task(self._paused())
            # Meanwhile executors have finished or returned their claimed tasks.
            outcome = await self._after_stop(await pausing)
            if self.stop is None or (outcome and outcome.is_over):
                return None
            self._report_outcome(self.stop, outcome)
            return self.stop.code

    async def _after_stop(self, outcome: PauseOutcome | None) -> PauseOutcome | None:
        """Read the counts again: executors finished claimed tasks after the pause."""
        if outcome is None:
            return None
        await record_unrecorded(self.servers, self.settings, self.wanted.batch_id)
        return await read_outcome(self.servers, self.wanted.batch_id, self._run_id) or outcome

    async def start(self, fleet: fleets.Fleet, stack: AsyncExitStack) -> None:
        """Start a fleet, and the coroutine beside it, until the stack is left."""
        manager = await stack.enter_async_context(self.processes(stack))
        stack.push_async_callback(end, self._tasks)
        self._manager = manager
        # Executors of an earlier command that was killed: their tasks are released at once.
        self._spawn(report_dead(self.servers.redis_url, fleet=fleet.name, is_dead=is_gone))
        fleets.start(fleet, manager)
        if self.wanted.beside:
            self._spawn(self.wanted.beside(manager))

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done_with)

    def _done_with(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("a background task of the run failed", exc_info=error)

    def processes(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[ProcessManager]:
        """Return the process manager of the fleet; its processes share one log."""
        log = sys.stderr.fileno() if self._verbose else stack.enter_context(open_private(self.log_path))
        settings = self.settings.model_copy(update={"worker_drain": min(DRAIN, self.settings.worker_drain)})
        environ = worker_environ(settings, self.servers)
        return process_manager(
            environ,
            log_to=log,
            on_restart=self._restarted,
            on_failure=self._could_not_start,
            forks=True,
            launched=self.wanted.launched,
        )

    # -- what ends a run before its batch is over

    @property
    def _serves(self) -> bool:
        """Whether this command runs the batch, instead of watching others do it."""
        return self.wanted.fleet is not None

    @property
    def _run_id(self) -> str:
        return self.wanted.fleet.run_id if self.wanted.fleet else FLEET

    def _stop(self, stop: Stop) -> None:
        if not self._is_over:
            self.stop = self.stop or stop
            self._stopping.set()

    def _interrupted(self) -> None:
        received, batch_id = self.interruption.received, self.wanted.batch_id
        if received is None or self.stop:
            return
        if self._is_over:
            self._print(
                f"{received.name}: {batch_id} is over, and its report follows. Once more ends at once."
            )
            return
        reason = f"interrupted by {received.name}"
        self._stop(Stop(reason, INTERRUPTED, pauses=self._serves))
        if self._serves:
            self._print(
                f"{reason}: pausing {batch_id}. Nothing new is started; what is in flight finishes within "
                f"{min(DRAIN, self.settings.worker_drain):g} s or is handed back. "
                f"Once more ends it at once. To continue later: {batch_command('resume', batch_id)}"
            )

    def _could_not_start(self, child: Child) -> None:
        error = last_error(self.log_path, since=child.log_offset) or f"exit code {child.exits[-1]}"
        reason = f"{child.name} could not start, {START_ATTEMPTS} times in a row: {error}"
        self._print(f"error: {reason}. Its log: {self.log_path}")
        self._stop(Stop(reason, FAILED))

    def _restarted(self, child: Child) -> None:
        self._report_restart(child)
        if child.process and self.wanted.fleet:
            # Its tasks are released at once, not when its heartbeat expires.
            pid, fleet = child.process.pid, self.wanted.fleet.name
            self._spawn(report_dead(self.servers.redis_url, fleet=fleet, is_dead=pid.__eq__))

    def _report_restart(self, child: Child) -> None:
        code = child.exits[-1]
        how = f"killed by signal {-code}" if code < 0 else f"code {code}"
        self._print(f"{child.name} ended ({how}): started again; see {self.log_path}")

    def _print(self, words: str) -> None:
        with suppress(OSError):  # a terminal that is gone
            self.console.print(words, markup=False, highlight=False, soft_wrap=True)

    async def _paused(self) -> PauseOutcome | None:
        """Pause the batch if the run must stop; None if the outcome is unknown."""
        if self.stop is None or not self.stop.pauses:
            return None
        return await pause_on_record(
            self.servers, self.settings, self.wanted.batch_id, self._run_id, reason=self.stop.reason
        )

    def _end_at_once(self) -> None:
        """Kill all processes, then record the pause: this runs in a signal handler."""
        if self._manager:
            self._manager.kill()
        if self._serves and self.stop:
            outcome = pause_at_once(
                self.servers, self.wanted.batch_id, self._run_id, reason=self.stop.reason
            )
            self._report_outcome(self.stop, outcome)

    def _report_outcome(self, stop: Stop, outcome: PauseOutcome | None) -> None:
        batch_id = self.wanted.batch_id
        self._print(_outcome_words(batch_id, stop, outcome))
        if self.wanted.as_json:
            document: dict[str, str | int] = {
                "batch_id": batch_id,
                "status": outcome.status if outcome else "running",
            }
            if outcome and outcome.status == "paused":
                document |= {"reason": outcome.reason, "ended": outcome.ended, "total": outcome.total}
            with suppress(OSError):
                print(json.dumps(document), flush=True)  # noqa: T201 - machines read stdout

    # -- watching

    async def _watch(self) -> None:
        async with fleet_reader(self.servers.redis_url) as fleet:
            poller = BatchPoller(self.servers.postgres_url, self.wanted.batch_id, fleet, self._print)
            try:
                await self._watch_with(poller)
            finally:
                await poller.aclose()

    async def _watch_with(self, poller: BatchPoller) -> None:
        with ProgressDisplay(self.console, plain=self._verbose) as display:
            while self.stop is None:
                view = await self._unless_stopped(poller.read())
                if view is None:
                    continue
                self._show(display, view)
                if is_over(view.snapshot):
                    self._is_over = True
                    return
                if self._run_id and view.snapshot.run_id != self._run_id:
                    self._stop(Stop("served by another command", ExitCode.STOPPED, pauses=False))
                await self._unless_stopped(asyncio.sleep(poll_interval(monotonic() - self._began)))

    async def _unless_stopped(self, step: Awaitable[Result]) -> Result | None:
        """Wait for one step; None as soon as the run must stop, whatever becomes of the step."""
        task, stopping = asyncio.ensure_future(step), asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({task, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task}, timeout=ABANDONED)
        if task.done() and not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it
        return None

    def _show(self, display: ProgressDisplay, view: BatchView) -> None:
        """Show progress; missing executors are not reported while the fleet starts."""
        is_served = (
            bool(view.fleet.serving(view.snapshot)) and view.unpublished < view.snapshot.progress.total
        )
        began = not self.wanted.fleet or is_served or monotonic() > self._began_by
        self._began_by = 0.0 if began else self._began_by
        if began:
            # Our own coordinator is about to close what has ended.
            is_closing = self.wanted.fleet and not view.snapshot.progress.pending
            display.show(view.snapshot, view.fleet, remarks=() if is_closing else reasons(view))
        else:
            display.show(view.snapshot, FLEET_NOT_READ)

    async def _report(self) -> int:
        async with fleet_reader(self.servers.redis_url) as fleet:
            view = await read_full_view(self.servers, self.wanted.batch_id, fleet)
        show(self.console, view)
        if self.wanted.as_json:
            print(json.dumps(view_document(view)), flush=True)  # noqa: T201 - machines read stdout
        await self._export()
        return self._exit_code(view)

    async def _export(self) -> None:
        """Write the exports that were asked for; each replaces the file of an earlier run."""
        for output in self.wanted.outputs:
            request = ExportRequest(self.wanted.batch_id, output.path, output.format, force=True)
            rows = await export_to(self.servers.postgres_url, request)
            self._print(f"{rows:,} evaluations written to {printable(str(output.path))}")

    def _exit_code(self, view: BatchView) -> int:
        gate = self.wanted.min_pass_rate
        code = gated_exit_code(view.snapshot, gate)
        if code is ExitCode.BELOW_GATE:
            rate = batch_pass_rate(view.snapshot).words() or "nothing"
            self._print(f"{rate} of all evaluations, below --min-pass-rate {gate:.1%}")
        return code


def poll_interval(elapsed: float) -> float:
    """Return a fifth of the time since the start: the end of a short batch is seen at once."""
    return min(POLL_INTERVAL, max(SHORTEST_POLL, elapsed / 5))


def _outcome_words(batch_id: str, stop: Stop, outcome: PauseOutcome | None) -> str:
    """Describe the state of a batch whose run was stopped."""
    resume, watch = batch_command("resume", batch_id), batch_command("status", batch_id, "--watch")
    if stop.code == ExitCode.STOPPED:
        return f"{batch_id} is served by another command now; this one ends. To watch it: {watch}"
    if not stop.pauses:
        return (
            f"{batch_id} continues in the fleet: only watching has stopped. "
            f"To pause it: {batch_command('pause', batch_id)}; to watch it again: {watch}"
        )
    if outcome is None:
        return (
            f"{batch_id} could not be marked as paused: PostgreSQL does not answer. "
            f"No process serves it. To continue: {resume}"
        )
    if outcome.status == "paused":
        count = f"{outcome.ended:,} of {outcome.total:,} ended"
        return (
            f"{batch_id} is paused: {outcome.reason}; {count}. No process is left running. "
            f"To continue: {resume}"
        )
    if outcome.run_is_replaced:
        return f"{batch_id} is served by another command now; this one ends. To watch it: {watch}"
    return f"{batch_id} is {outcome.status}. Its results: {batch_command('status', batch_id)}"
