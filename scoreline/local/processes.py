"""The local process manager: starts children, restarts whatever dies, and leaves nothing behind.

A storage worker may end with exit code 0 when Redis loses its groups, so *any* exit means a restart, but
for a child that can't start: one that fails, again and again, before it reports ready or right after.
Each child reads its standard input until it ends: a pipe that closes the moment this process is gone,
however it went. Then the child ends itself.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from subprocess import DEVNULL
from typing import IO

from eventlog.backoff import Backoff
from eventlog.tasks import end
from scoreline.local.fork_server_launch import LaunchedServer, can_fork, launch
from scoreline.local.forked_processes import ForkedProcess, ForkServer
from scoreline.local.readiness import READY_FD, UNAVAILABLE

logger = logging.getLogger(__name__)

STOP_TIMEOUT = 20.0
"""Seconds a child gets to finish its work after SIGTERM."""
START_ATTEMPTS = 3
"""Failed starts in a row after which a child is not started again."""
STABLE_AFTER = 10.0
"""Seconds after which a child's next end counts as a new misfortune, not the same one again."""


@dataclass(slots=True)
class Child:
    """A process that is kept alive."""

    name: str
    argv: Sequence[str]
    serves: bool = False
    """Whether others need it until their own end."""
    process: "asyncio.subprocess.Process | ForkedProcess | None" = None
    exits: list[int] = field(default_factory=list)
    failed_starts: int = 0
    """Failed starts in a row."""
    log_offset: int = 0
    """Where the log ended when it was last started."""
    _ready: int | None = None

    def has_reported_ready(self) -> bool:
        """Whether it had started before it ended; can be asked once."""
        if self._ready is None:
            return False
        try:
            return bool(os.read(self._ready, 1))
        except BlockingIOError:
            return False
        finally:
            os.close(self._ready)
            self._ready = None


@dataclass(slots=True)
class ProcessManager:
    """Keeps children alive until it is left."""

    environ: Mapping[str, str]
    log_to: IO[bytes] | int = DEVNULL
    on_restart: Callable[[Child], None] | None = None
    on_failure: Callable[[Child], None] | None = None
    """Called instead of one more start of a child that can't start; None: it is started for ever."""
    forks: bool = False
    """Whether commands of ours are forks of one process that has imported them, where that is possible."""
    launched: LaunchedServer | None = None
    """The first fork server, if it was launched before."""
    children: list[Child] = field(default_factory=list)
    _fork_server: "asyncio.Task[ForkServer] | None" = None
    _keepers: list[asyncio.Task[None]] = field(default_factory=list)

    def keep(self, name: str, argv: Sequence[str], *, serves: bool = False) -> Child:
        """Start a child and keep it running; one that serves the others is stopped after them."""
        child = Child(name, argv, serves)
        self.children.append(child)
        self._keepers.append(asyncio.create_task(self._keep_alive(child)))
        return child

    async def _keep_alive(self, child: Child) -> None:
        backoff = Backoff(longest=5.0, first=0.05)
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            child.process = await self._start(child)
            code = await child.process.wait()
            child.exits.append(code)
            if self._cannot_start(child, lived=loop.time() - started) and self.on_failure:
                self.on_failure(child)
                return
            if self.on_restart:
                self.on_restart(child)
            else:
                logger.warning(
                    "process ended, starting it again", extra={"child": child.name, "code": code}
                )
            if loop.time() - started > STABLE_AFTER:
                backoff.reset()
            await asyncio.sleep(backoff.next())

    def _cannot_start(self, child: Child, *, lived: float) -> bool:
        """Count failed starts; a child that was killed, ended well or found no server has not failed."""
        is_ready, code = child.has_reported_ready(), child.exits[-1]
        if code > 0 and code != UNAVAILABLE and (not is_ready or lived < STABLE_AFTER):
            child.failed_starts += 1
        elif code != UNAVAILABLE:
            child.failed_starts = 0
        return child.failed_starts >= START_ATTEMPTS

    async def _start(self, child: Child) -> "asyncio.subprocess.Process | ForkedProcess":
        child.log_offset = _size(self.log_to)
        child._ready, report_to = os.pipe()  # noqa: SLF001 - its own end of the pipe
        os.set_blocking(child._ready, False)  # noqa: SLF001 - as above
        try:
            if self.forks and can_fork(self.environ) and _is_service(child.argv):
                try:
                    return await self._forked(child, report_to)
                except ConnectionError:
                    logger.warning("fork server ended: processes are started by themselves")
                    self.forks = False
            return await self._spawned(child, report_to)
        finally:
            os.close(report_to)

    async def _spawned(self, child: Child, report_to: int) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *child.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=self.log_to,
            stderr=self.log_to,
            env={**self.environ, READY_FD: str(report_to)},
            pass_fds=[report_to],
            start_new_session=True,
        )

    async def _forked(self, child: Child, report_to: int) -> ForkedProcess:
        server = await self.fork_server()
        argv = child.argv[len(service_argv()) :]
        with _descriptor(self.log_to) as log:
            return await server.start(argv, self.environ, log=log, ready=report_to, ready_name=READY_FD)

    async def fork_server(self) -> ForkServer:
        """Return the fork server, started at the first call and again after its death."""
        starting = self._fork_server
        lost = starting.result() if starting and starting.done() and starting.result().is_lost else None
        if starting is None or lost:
            starting = self._fork_server = asyncio.create_task(self._started_fork_server(lost))
        return await asyncio.shield(starting)

    async def _started_fork_server(self, lost: ForkServer | None) -> ForkServer:
        if lost:
            await lost.stop()
        launched, self.launched = self.launched, None
        with _descriptor(self.log_to) as log:
            return ForkServer.following(launched or launch(self.environ, log))

    async def stop(self) -> None:
        """Ask every child to finish, and end those that do not."""
        await end(self._keepers)
        for child in self.children:
            child.has_reported_ready()  # which closes the pipe
        for serves in (False, True):
            await asyncio.gather(*(self._end(child) for child in self.children if child.serves is serves))
        if self._fork_server:
            await (await self._fork_server).stop()

    def kill(self) -> None:
        """Kill every child at once, without a graceful stop."""
        for child in self.children:
            if child.process and child.process.returncode is None:
                with suppress(ProcessLookupError):
                    child.process.kill()

    async def _end(self, child: Child) -> None:
        process = child.process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_TIMEOUT)
        except TimeoutError:
            logger.warning("process did not stop in time", extra={"child": child.name})
            process.kill()
            await process.wait()


@asynccontextmanager
async def process_manager(  # noqa: PLR0913 - what a manager has
    environ: Mapping[str, str],
    *,
    log_to: IO[bytes] | int = DEVNULL,
    on_restart: Callable[[Child], None] | None = None,
    on_failure: Callable[[Child], None] | None = None,
    forks: bool = False,
    launched: LaunchedServer | None = None,
) -> AsyncIterator[ProcessManager]:
    """Manage children for as long as the block lasts."""
    manager = ProcessManager(environ, log_to, on_restart, on_failure, forks, launched)
    try:
        yield manager
    finally:
        await manager.stop()


def service_argv(*words: str) -> list[str]:
    """Spell out a command of ours for another process, which imports nothing from the working directory."""
    return [sys.executable, "-P", "-m", "scoreline", *words]


def _is_service(argv: Sequence[str]) -> bool:
    return list(argv[: len(service_argv())]) == service_argv()


@contextmanager
def _descriptor(log: IO[bytes] | int) -> Iterator[int]:
    """Lend the number of a log that is given as `subprocess` takes it."""
    if log != DEVNULL:
        yield log if isinstance(log, int) else log.fileno()
        return
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        yield null
    finally:
        os.close(null)


def _size(log: IO[bytes] | int) -> int:
    return 0 if isinstance(log, int) else os.fstat(log.fileno()).st_size


def end_with_parent() -> None:
    """End this process when its standard input does: its manager is gone."""
    watcher = threading.Thread(target=_await_end_of_input, name="end-with-parent", daemon=True)
    watcher.start()


def _await_end_of_input() -> None:
    # Not through sys.stdin: a thread inside its lock makes the interpreter abort when it ends.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
