"""Driving a batch to its end: the processes it needs, its progress, and what the command ends with.

The first interrupt lets executors finish what they have in hand and says how to go on; the second ends
this process at once, and all it started ends with it.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from time import monotonic
from typing import Any, NoReturn

from rich.console import Console

from eventlog.tasks import end
from scoreline import fleet as fleets
from scoreline.batches.crew import NOT_ASKED, crew_reader
from scoreline.batches.departed import is_gone, report_dead
from scoreline.batches.look import Look
from scoreline.batches.pass_rate import batch_pass_rate
from scoreline.batches.progress_line import ProgressDisplay
from scoreline.batches.standing import ExitCode, command, exit_code, is_over
from scoreline.batches.status import close_look, look_document, show
from scoreline.batches.watch import Watcher
from scoreline.batches.why import reasons
from scoreline.embedded import Servers, default_root
from scoreline.processes import Child, ProcessManager, process_manager
from scoreline.settings import Settings
from scoreline.workers import worker_environ

logger = logging.getLogger(__name__)

BELOW_THE_GATE = 100
INTERRUPTED = 130
DRAIN = 15.0
"""Seconds that executors of a local fleet get to finish what they have in hand."""
STARTING = 15.0
"""Seconds after which a fleet that is not there is news."""

Beside = Callable[[ProcessManager], Coroutine[Any, Any, None]]
"""What somebody does to the processes of a fleet while the batch goes on."""


@dataclass(frozen=True, slots=True)
class Drive:
    """How a batch is driven."""

    batch_id: str
    fleet: fleets.Fleet | None
    """What to start here; None where others do the work."""
    as_json: bool = False
    min_pass_rate: float | None = None
    beside: Beside | None = None


def drive(wanted: Drive, servers: Servers, settings: Settings, console: Console) -> int:
    """Drive a batch until it is over, and return the exit code."""
    return asyncio.run(Driving(wanted, servers, settings, console).run())


class Driving:
    """One batch on its way to its end."""

    def __init__(self, wanted: Drive, servers: Servers, settings: Settings, console: Console) -> None:
        self.wanted, self.servers, self.settings, self.console = wanted, servers, settings, console
        self.log_path = (settings.data_dir or default_root()) / "fleet.log"
        self.interrupted = asyncio.Event()
        self._began_by = monotonic() + STARTING
        self._errands: set[asyncio.Task[None]] = set()
        self._manager: ProcessManager | None = None

    @property
    def _verbose(self) -> bool:
        """Whether the processes log to this command's standard error instead of to their file."""
        return self.settings.log_level == "DEBUG"

    async def run(self) -> int:
        """Drive it, report, and return the exit code."""
        return await self._report() if await self.until_over() else INTERRUPTED

    async def until_over(self) -> bool:
        """Drive it until it is over; False if somebody interrupted that, and was told how to go on."""
        loop = asyncio.get_running_loop()
        for wanted in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(wanted, self._interrupt)
        async with AsyncExitStack() as stack:
            if self.wanted.fleet:
                await self.start(self.wanted.fleet, stack)
            await self._watch_or_interrupt()
        if self.interrupted.is_set():
            self._tell_it_is_not_over()
        return not self.interrupted.is_set()

    async def start(self, fleet: fleets.Fleet, stack: AsyncExitStack) -> None:
        """Start a fleet, and what somebody wants to do to it, until the stack is left."""
        manager = await stack.enter_async_context(self.processes(stack))
        stack.push_async_callback(end, self._errands)
        self._manager = manager
        # Those of an earlier command that was killed: what they had in hand need not wait for them.
        self._run_errand(report_dead(self.servers.redis_url, fleet=fleet.name, is_dead=is_gone))
        fleets.start(fleet, manager)
        if self.wanted.beside:
            self._run_errand(self.wanted.beside(manager))

    def _run_errand(self, errand: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(errand)
        self._errands.add(task)
        task.add_done_callback(self._done_with)

    def _done_with(self, task: "asyncio.Task[None]") -> None:
        self._errands.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("an errand failed", exc_info=error)

    def processes(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[ProcessManager]:
        """Keep processes alive that know where the servers are, and write to one log."""
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        log = sys.stderr.fileno() if self._verbose else stack.enter_context(self.log_path.open("ab"))
        settings = self.settings.model_copy(update={"worker_drain": min(DRAIN, self.settings.worker_drain)})
        environ = worker_environ(settings, self.servers)
        return process_manager(environ, log_to=log, on_restart=self._restarted)

    def _restarted(self, child: Child) -> None:
        self._say_restarted(child)
        if child.process and self.wanted.fleet:
            # So that the batch is spared the wait for a heartbeat that will not come.
            pid, fleet = child.process.pid, self.wanted.fleet.name
            self._run_errand(report_dead(self.servers.redis_url, fleet=fleet, is_dead=pid.__eq__))

    def _say_restarted(self, child: Child) -> None:
        code = child.exits[-1]
        how = f"killed by signal {-code}" if code < 0 else f"code {code}"
        self._say(f"{child.name} ended ({how}): started again; see {self.log_path}")

    def _say(self, words: str) -> None:
        self.console.print(words, markup=False, highlight=False, soft_wrap=True)

    def _interrupt(self) -> None:
        if self.interrupted.is_set():
            self._end_at_once()
        self.interrupted.set()
        self._say("stopping: letting executors finish what they have in hand; once more ends them at once")

    def _end_at_once(self) -> NoReturn:
        try:
            if self._manager:
                self._manager.kill()
            self._tell_it_is_not_over()
        finally:
            os._exit(INTERRUPTED)

    async def _watch_or_interrupt(self) -> None:
        watching = asyncio.create_task(self._watch())
        stopping = asyncio.create_task(self.interrupted.wait())
        done, waiting = await asyncio.wait({watching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for task in done:
            task.result()

    async def _watch(self) -> None:
        async with crew_reader(self.servers.redis_url) as crew:
            watcher = Watcher(self.servers.postgres_url, self.wanted.batch_id, crew, self._say)
            with ProgressDisplay(self.console, plain=self._verbose) as display:
                await watcher.until_over(lambda look: self._show(display, look))

    def _show(self, display: ProgressDisplay, look: Look) -> None:
        """Show progress; that nobody works on it is no news while those who will are being started."""
        began = not self.wanted.fleet or bool(look.crew.present) or monotonic() > self._began_by
        self._began_by = 0.0 if began else self._began_by
        if began:
            # Our own coordinator is about to close what has ended.
            is_closing = self.wanted.fleet and not look.snapshot.pending
            display.show(look.snapshot, look.crew, remarks=() if is_closing else reasons(look))
        else:
            display.show(look.snapshot, NOT_ASKED)

    def _tell_it_is_not_over(self) -> None:
        batch_id = self.wanted.batch_id
        self._say(f"{batch_id} is not over; nothing is lost. To go on: {command('resume', batch_id)}")
        if self.wanted.as_json:
            print(json.dumps({"batch_id": batch_id, "status": "running"}), flush=True)  # noqa: T201 - machines read stdout

    async def _report(self) -> int:
        async with crew_reader(self.servers.redis_url) as crew:
            look = await close_look(self.servers, self.wanted.batch_id, crew)
        show(self.console, look)
        if self.wanted.as_json:
            print(json.dumps(look_document(look)), flush=True)  # noqa: T201 - machines read stdout
        return self._exit_code(look)

    def _exit_code(self, look: Look) -> int:
        code = exit_code(look.snapshot)
        gate = self.wanted.min_pass_rate
        if gate is None or not is_over(look.snapshot) or code is ExitCode.STOPPED:
            return code
        rate = batch_pass_rate(look.snapshot)
        if rate.value is None or rate.value < gate:
            self._say(f"{rate.words() or 'nothing'} of all evaluations, below --min-pass-rate {gate:.1%}")
            return BELOW_THE_GATE
        return code
