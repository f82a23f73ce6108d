"""The local process manager: starts children, restarts whatever dies, and leaves nothing behind.

A storage worker may end with exit code 0 when Redis loses its groups, so *any* exit means a restart.
Each child reads its standard input until it ends: a pipe that closes the moment this process is gone,
however it went. Then the child ends itself.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from subprocess import DEVNULL
from typing import IO

from eventlog.backoff import Backoff
from eventlog.tasks import end

logger = logging.getLogger(__name__)

STOP_PATIENCE = 20.0
"""Seconds a child gets to finish what it has in hand."""
STABLE_AFTER = 10.0
"""Seconds after which a child's next end counts as a new misfortune, not the same one again."""


@dataclass(slots=True)
class Child:
    """A process that is kept alive."""

    name: str
    argv: Sequence[str]
    serves: bool = False
    """Whether others need it until their own end."""
    process: asyncio.subprocess.Process | None = None
    exits: list[int] = field(default_factory=list)


@dataclass(slots=True)
class ProcessManager:
    """Keeps children alive until it is left."""

    environ: Mapping[str, str]
    log_to: IO[bytes] | int = DEVNULL
    on_restart: Callable[[Child], None] | None = None
    children: list[Child] = field(default_factory=list)
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
            if self.on_restart:
                self.on_restart(child)
            else:
                logger.warning(
                    "process ended, starting it again", extra={"child": child.name, "code": code}
                )
            if loop.time() - started > STABLE_AFTER:
                backoff.reset()
            await asyncio.sleep(backoff.next())

    async def _start(self, child: Child) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *child.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=self.log_to,
            stderr=self.log_to,
            env=dict(self.environ),
            start_new_session=True,
        )

    async def stop(self) -> None:
        """Ask every child to finish, and end those that do not."""
        await end(self._keepers)
        for serves in (False, True):
            await asyncio.gather(*(self._end(child) for child in self.children if child.serves is serves))

    def kill(self) -> None:
        """End every child at once, whatever it has in hand."""
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
            await asyncio.wait_for(process.wait(), STOP_PATIENCE)
        except TimeoutError:
            logger.warning("process did not stop in time", extra={"child": child.name})
            process.kill()
            await process.wait()


@asynccontextmanager
async def process_manager(
    environ: Mapping[str, str],
    *,
    log_to: IO[bytes] | int = DEVNULL,
    on_restart: Callable[[Child], None] | None = None,
) -> AsyncIterator[ProcessManager]:
    """Manage children for as long as the block lasts."""
    manager = ProcessManager(environ, log_to, on_restart)
    try:
        yield manager
    finally:
        await manager.stop()


def end_with_parent() -> None:
    """End this process when its standard input does: its manager is gone."""
    watcher = threading.Thread(target=_await_end_of_input, name="end-with-parent", daemon=True)
    watcher.start()


def _await_end_of_input() -> None:
    # Not through sys.stdin: a thread inside its lock makes the interpreter abort when it ends.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
