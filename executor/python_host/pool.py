"""As many hosts of one function as are needed: one for a coroutine function, several for a plain one.

Whether a function is one or the other is known when the first host has imported it; until then there is
only one. A function that can't be imported is not tried again at every call, but now and then.

A host that is lost may take calls along that did nothing. Those are made once more, each in a host of its
own: there a second loss has one possible cause.
"""

import asyncio
from collections.abc import Mapping
from time import monotonic

from eventlog.redaction import KNOWN, redact
from eventlog.secret_sources import secrets_in
from executor.contract import CallFault, Permanent, Transient
from executor.python_host.host import FunctionCall, FunctionResult, HostProcess, SharedHostLost

MOST_HOSTS = 8
IMPORT_AGAIN_AFTER = 5.0
"""Seconds for which a failed import is cached."""


class HostPool:
    """Calls one function, in processes that it starts and ends."""

    def __init__(
        self, function: str, *, workdir: str, environ: Mapping[str, str], slots: int, interpreter: str = ""
    ) -> None:
        self._function, self._workdir, self._interpreter = function, workdir, interpreter
        # Our own settings name servers and passwords that a function has no business with.
        self._environ = {name: value for name, value in environ.items() if not name.startswith("EVAL_")}
        KNOWN.add(secrets_in(environ))
        self._most = max(1, min(slots, MOST_HOSTS))
        self._busy: dict[HostProcess, int] = {}
        self._solitary: set[HostProcess] = set()
        self._isolation = asyncio.Semaphore(self._most)
        self._starting = 0
        self._is_async: bool | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._burials: set[asyncio.Task[None]] = set()
        self._broken: tuple[Permanent, float] | None = None
        self._closed = False

    @property
    def hosts(self) -> tuple[HostProcess, ...]:
        """Those that are there now."""
        return tuple(self._busy)

    async def call(self, call: FunctionCall) -> FunctionResult:
        """Call the function, as soon as there is a host for it; raises a `CallFault`."""
        try:
            try:
                return await self._call_shared(call)
            except SharedHostLost:
                return await self._call_alone(call)
        except CallFault as fault:
            raise type(fault)(fault.kind, redact(fault.message)) from None

    async def _call_shared(self, call: FunctionCall) -> FunctionResult:
        host = await self._take()
        try:
            return await host.call(call)
        finally:
            self._give_back(host)

    async def _call_alone(self, call: FunctionCall) -> FunctionResult:
        """Call the function in a host that serves no other call."""
        async with self._isolation:
            if self._closed:
                raise Transient("host_lost", "the executor is stopping")
            host = await self._spawn()
            self._solitary.add(host)
            try:
                await host.ready(self._function)
                return await host.call(call)
            finally:
                self._solitary.discard(host)
                self._bury(host)

    async def aclose(self) -> None:
        """End all hosts, and wait until they have ended."""
        self._closed = True
        for host in (*self.hosts, *self._solitary):
            self._bury(host)
        self._wake()
        await asyncio.gather(*self._burials)

    async def _take(self) -> HostProcess:
        while not self._closed:
            self._raise_if_broken()
            if host := self._free():
                self._busy[host] += 1
                return host
            if len(self._busy) + self._starting < self._limit():
                return await self._start()
            await self._change()
        raise Transient("host_lost", "the executor is stopping")

    def _free(self) -> HostProcess | None:
        for host, calls in tuple(self._busy.items()):
            if not host.is_alive:
                self._bury(host)
            elif host.is_async or calls == 0:
                return host
        return None

    def _limit(self) -> int:
        return self._most if self._is_async is False else 1

    async def _start(self) -> HostProcess:
        self._starting += 1
        try:
            host = await self._spawn()
            await self._make_ready(host)
        finally:
            self._starting -= 1
            self._wake()
        return host

    async def _spawn(self) -> HostProcess:
        return await HostProcess.spawn(
            self._function,
            workdir=self._workdir,
            environ=self._environ,
            interpreter=self._interpreter,
        )

    async def _make_ready(self, host: HostProcess) -> None:
        try:
            await host.ready(self._function)
        except BaseException as error:
            if isinstance(error, Permanent):
                self._broken = error, monotonic() + IMPORT_AGAIN_AFTER
            self._bury(host)
            raise
        self._is_async = host.is_async
        self._busy[host] = 1

    def _raise_if_broken(self) -> None:
        if self._broken and monotonic() < self._broken[1]:
            raise Permanent(self._broken[0].kind, self._broken[0].message)

    def _give_back(self, host: HostProcess) -> None:
        if host in self._busy:
            self._busy[host] -= 1
            if not host.is_alive:
                self._bury(host)
        self._wake()

    def _bury(self, host: HostProcess) -> None:
        """End a host in the background: the caller that detects its end may be cancelled."""
        self._busy.pop(host, None)
        host.kill()
        burial = asyncio.create_task(host.aclose())
        self._burials.add(burial)
        burial.add_done_callback(self._burials.discard)

    async def _change(self) -> None:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
