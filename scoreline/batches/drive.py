"""Driving a batch to its end: the processes it needs, its progress, and what the command ends with.

The first interrupt lets executors finish what they have in hand and says how to go on; the second ends
this process at once, and all it started ends with it.
"""

import asyncio
import json
import os
import signal
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass

from rich.console import Console

from scoreline import fleet as fleets
from scoreline.batches.crew import crew_reader
from scoreline.batches.look import Look
from scoreline.batches.progress_line import ProgressDisplay
from scoreline.batches.standing import ExitCode, command, exit_code, is_over
from scoreline.batches.status import close_look, look_document, show
from scoreline.batches.watch import Watcher
from scoreline.batches.why import reasons
from scoreline.embedded import Servers, default_root
from scoreline.processes import Child, ProcessManager, process_manager
from scoreline.settings import Settings
from scoreline.workers import worker_environ

BELOW_THE_GATE = 100
INTERRUPTED = 130
DRAIN = 15.0
"""Seconds that executors of a local fleet get to finish what they have in hand."""


@dataclass(frozen=True, slots=True)
class Drive:
    """How a batch is driven."""

    batch_id: str
    fleet: fleets.Fleet | None
    """What to start here; None where others do the work."""
    as_json: bool = False
    min_pass_rate: float | None = None


def drive(wanted: Drive, servers: Servers, settings: Settings, console: Console) -> int:
    """Drive a batch until it is over, and return the exit code."""
    return asyncio.run(_Driving(wanted, servers, settings, console).run())


class _Driving:
    def __init__(self, wanted: Drive, servers: Servers, settings: Settings, console: Console) -> None:
        self.wanted, self.servers, self.settings, self.console = wanted, servers, settings, console
        self.log_path = (settings.data_dir or default_root()) / "fleet.log"
        self.interrupted = asyncio.Event()

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for wanted in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(wanted, self._interrupt)
        async with AsyncExitStack() as stack:
            if self.wanted.fleet:
                manager = await stack.enter_async_context(self._processes(stack))
                fleets.start(self.wanted.fleet, manager)
            await self._watch_or_interrupt()
        if self.interrupted.is_set():
            self._say_how_to_go_on()
            return INTERRUPTED
        return await self._report()

    def _processes(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[ProcessManager]:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        log = stack.enter_context(self.log_path.open("ab"))
        settings = self.settings.model_copy(update={"worker_drain": min(DRAIN, self.settings.worker_drain)})
        environ = worker_environ(settings, self.servers)
        return process_manager(environ, log_to=log, on_restart=self._say_restarted)

    def _say_restarted(self, child: Child) -> None:
        code = child.exits[-1]
        how = f"killed by signal {-code}" if code < 0 else f"code {code}"
        self._say(f"{child.name} ended ({how}): started again; see {self.log_path}")

    def _say(self, words: str) -> None:
        self.console.print(words, markup=False, highlight=False, soft_wrap=True)

    def _interrupt(self) -> None:
        if self.interrupted.is_set():
            os._exit(INTERRUPTED)  # children end with their standard input
        self.interrupted.set()
        self._say("stopping: letting executors finish what they have in hand; once more ends them at once")

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
            with ProgressDisplay(self.console) as display:

                def on_look(look: Look) -> None:
                    display.show(look.snapshot, look.crew, remarks=reasons(look))

                await watcher.until_over(on_look)

    def _say_how_to_go_on(self) -> None:
        batch_id = self.wanted.batch_id
        self._say(f"{batch_id} is not over; nothing is lost. To go on: {command('resume', batch_id)}")

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
        passed = look.snapshot.passed / look.snapshot.total if look.snapshot.total else 1.0
        if passed < gate:
            self._say(f"{passed:.1%} of all evaluations passed, below the {gate:.1%} asked for")
            return BELOW_THE_GATE
        return code
