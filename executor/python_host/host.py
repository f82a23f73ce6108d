"""The executor's side of a host: one child process that calls one function.

A child may hang, exit, crash, or print without end. Only the end of its output is kept; when its process
has ended, every running call gets `Transient("host_lost")`, and its process group is killed.

A function shares its process with the protocol. It can write to the stream of replies, or close it. Every
reply is preceded by a key of this host; anything else on the stream ends the host. A call that may have
lost its host to another call raises `SharedHostLost`: it can be repeated in a process of its own.
"""

import asyncio
import json
import os
import secrets
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from pydantic_core import to_json

from eventlog.payloads import MAX_TEXT
from eventlog.redaction import redact_tail
from eventlog.tasks import end
from executor.contract import CallFault, Permanent, Transient
from executor.python_host.function_server import KEY_BYTES, LENGTH

TAIL = 4_000
"""Bytes kept of a function's output."""
READ_TAIL = 4 * TAIL
"""Bytes kept until secrets are redacted: a cut must not leave part of one."""
TAIL_GRACE = 0.05
"""Seconds to wait for output, which arrives by another pipe than the failure."""
CANCEL_GRACE = 1.0
"""Seconds a coroutine gets to end itself when it is cancelled."""
EXIT_GRACE = 1.0
"""Seconds that a process without a stream of replies gets to end."""
MAX_REPLY = 16 * MAX_TEXT
CHILD = Path(__file__).with_name("function_server.py")


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The arguments of a call."""

    subject: JsonValue
    """Its first argument."""
    fields: Mapping[str, JsonValue]
    offered: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that it may request by name."""


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """The value that a function returned, and the time it took without queueing."""

    value: JsonValue
    seconds: float


class SharedHostLost(Transient):
    """The host was lost before the call had started, or perhaps through another call of the same host."""


class ProtocolViolation(Exception):  # noqa: N818 - what happened
    """The stream of replies has something on it that is not a reply."""


class HostProcess:
    """A child process, from its start to its end."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int, python: str) -> None:
        self.is_async = False
        self.calls: dict[int, asyncio.Future[FunctionResult]] = {}
        self._process, self._lifeline, self._python = process, lifeline, python
        self._numbers = count(1)
        self._started: set[int] = set()
        self._key = secrets.token_bytes(KEY_BYTES)
        self._write(self._key)
        self._tail = b""
        self._lost: CallFault | None = None
        self._tasks = [asyncio.create_task(self._keep_tail())]

    @classmethod
    async def spawn(
        cls, function: str, *, workdir: str, environ: Mapping[str, str], interpreter: str = ""
    ) -> "HostProcess":
        """Start a child in a process group of its own, under an interpreter or the executor's own."""
        python = interpreter_path(interpreter, workdir=workdir, environ=environ)
        theirs, ours = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *(python, str(CHILD), function, workdir, str(MAX_TEXT), str(theirs)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=workdir or None,
                env=dict(environ),
                pass_fds=[theirs],
                start_new_session=True,
            )
        except BaseException as error:
            os.close(ours)
            if isinstance(error, OSError):
                raise _not_started(workdir, python, error) from error
            raise
        finally:
            os.close(theirs)
        return cls(process, ours, python)

    async def ready(self, function: str) -> None:
        """Wait until the child has imported the function; raises a `CallFault` if it can't."""
        try:
            message = await self._receive()
        except asyncio.IncompleteReadError:
            raise await self._with_tail(await self._ended_too_early(function)) from None
        except ProtocolViolation as violation:
            fault = Permanent("import", f"{function} can't be imported: {violation}")
            raise await self._with_tail(fault) from None
        if broken := message.get("broken"):
            where = "" if self._python == sys.executable else f" by {self._python}"
            fault = Permanent("import", f"{function} can't be imported{where}: {broken}")
            raise await self._with_tail(fault)
        self.is_async = message["async"]
        self._tasks += [asyncio.create_task(self._take_replies()), asyncio.create_task(self._await_end())]

    async def _ended_too_early(self, function: str) -> CallFault:
        code = await self._process.wait()
        message = f"{self._python} ended {_how(code)} while it imported {function}"
        return Transient("host_lost", message) if code < 0 else Permanent("import", message)

    @property
    def is_alive(self) -> bool:
        """Whether it can still be given a call."""
        return self._lost is None

    async def call(self, call: FunctionCall) -> FunctionResult:
        """Call the function; raises a `CallFault`. A cancelled call is ended, if need be with the child."""
        if self._lost:
            raise SharedHostLost(self._lost.kind, self._lost.message)
        if not self.is_async:
            self._tail = b""  # earlier output belongs to other calls
        number = next(self._numbers)
        future: asyncio.Future[FunctionResult] = asyncio.get_running_loop().create_future()
        self.calls[number] = future
        message = {"call": number, "subject": call.subject, "fields": call.fields, "offered": call.offered}
        try:
            self._send(message)
            return await future
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        except CallFault as fault:
            raise await self._with_tail(fault) from None

    def kill(self) -> None:
        """End the child and whatever it has started, now."""
        self._lose("its process was ended")

    async def aclose(self) -> None:
        """Kill the child and wait until it has ended."""
        self.kill()
        await self._process.wait()
        await end(self._tasks)

    def _send(self, message: Mapping[str, Any]) -> None:
        body = to_json(message)
        self._write(LENGTH.pack(len(body)) + body)

    def _write(self, content: bytes) -> None:
        assert self._process.stdin  # noqa: S101 - a pipe, as `spawn` requests
        # uvloop raises where the child has closed its end; the child ends without it, and so does the call.
        with suppress(RuntimeError):
            self._process.stdin.write(content)

    async def _receive(self) -> dict[str, Any]:
        assert self._process.stdout  # noqa: S101 - as above
        header = await self._process.stdout.readexactly(KEY_BYTES + LENGTH.size)
        (length,) = LENGTH.unpack(header[KEY_BYTES:])
        if not secrets.compare_digest(header[:KEY_BYTES], self._key) or length > MAX_REPLY:
            raise ProtocolViolation("the function wrote to a protocol descriptor of its process")
        body = await self._process.stdout.readexactly(length)
        try:
            message: dict[str, Any] = json.loads(body)
        except ValueError:
            raise ProtocolViolation("the function wrote into a reply of its process") from None
        return message

    async def _take_replies(self) -> None:
        try:
            while True:
                self._take(await self._receive())
        except asyncio.IncompleteReadError:
            await asyncio.sleep(EXIT_GRACE)  # the exit of the process, if it follows, is a better reason
            self._lose("the function closed a protocol descriptor of its process", is_violation=True)
        except ProtocolViolation as violation:
            self._lose(str(violation), is_violation=True)

    def _take(self, message: Mapping[str, Any]) -> None:
        if number := message.get("started"):
            self._started.add(number)
            return
        self._started.discard(message["call"])
        future = self.calls.pop(message["call"], None)
        if future and not future.done():
            _settle(future, message)

    async def _await_end(self) -> None:
        code = await self._process.wait()
        self._lose(f"the process ended {_how(code)} during the call")

    def _lose(self, reason: str, *, is_violation: bool = False) -> None:
        if self._lost:
            return
        self._lost = Transient("host_lost", reason)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        os.close(self._lifeline)
        for number, future in self.calls.items():
            if not future.done():
                is_own = self._is_cause(number, is_violation=is_violation)
                future.set_exception((Transient if is_own else SharedHostLost)("host_lost", reason))
        self.calls.clear()

    def _is_cause(self, number: int, *, is_violation: bool) -> bool:
        """Whether no other call can have lost the host: a thread of an earlier one may still write."""
        is_alone = len(self.calls) == 1 and not (is_violation and number > 1)
        return number in self._started and is_alone

    def _cancel(self, number: int) -> None:
        if self._lost or number not in self.calls:
            return
        if not self.is_async:
            self.kill()
            return
        self._send({"cancel": number})
        asyncio.get_running_loop().call_later(CANCEL_GRACE, self._kill_if_unanswered, number)

    def _kill_if_unanswered(self, number: int) -> None:
        if number in self.calls:
            self._lose("another call in the same process could not be stopped")

    async def _keep_tail(self) -> None:
        assert self._process.stderr  # noqa: S101 - as above
        while chunk := await self._process.stderr.read(1 << 16):
            self._tail = (self._tail + chunk)[-READ_TAIL:]

    async def _with_tail(self, fault: CallFault) -> CallFault:
        await asyncio.sleep(TAIL_GRACE)
        tail = redact_tail(self._tail.decode(errors="replace").strip(), TAIL)
        return type(fault)(fault.kind, f"{fault.message}\nit printed: {tail}") if tail else fault


def interpreter_path(interpreter: str, *, workdir: str, environ: Mapping[str, str]) -> str:
    """Find an interpreter: a path from the batch's folder, a name on the PATH, or nothing for our own.

    Links are not followed: the one of a virtual environment is what makes it one.
    """
    if not interpreter:
        return sys.executable
    if "/" in interpreter:
        return os.path.join(workdir, os.path.expanduser(interpreter))  # noqa: PTH111, PTH118 - as written
    return shutil.which(interpreter, path=environ.get("PATH")) or interpreter


def _not_started(workdir: str, python: str, error: OSError) -> CallFault:
    if not shutil.which(python):
        what = f"there is no interpreter {python} here: set `interpreter` of the python target"
        return Permanent("interpreter", what)
    if isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError):
        return Permanent("import", f"the directory {workdir!r} of the batch can't be entered here: {error}")
    return Transient("host_lost", f"no process could be started: {error}")


def _settle(future: "asyncio.Future[FunctionResult]", message: Mapping[str, Any]) -> None:
    if kind := message.get("fault"):
        made = Transient if message["transient"] else Permanent
        future.set_exception(made(kind, message["message"]))
    else:
        future.set_result(FunctionResult(message["value"], message["seconds"]))


def _how(code: int) -> str:
    return f"by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"with code {code}"
