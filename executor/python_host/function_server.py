"""The child process of a host: imports a function, and calls it on request.

It runs as a script under the user's interpreter, Python 3.8 or newer, which need not have the project
installed: it imports the standard library only. All of that is imported first, also what asyncio and
traceback would import later. Then the function's directory becomes the first entry of the path, and modules
of the standard library that a file there shadows are dropped: the function finds its own `queue.py`, this
file and asyncio keep theirs.

    standard input    key, then requests     each: length (4 bytes) and a JSON object
    standard output   replies                each: key, length (4 bytes) and a JSON object
    standard error    output of the function, from either stream

The two protocol streams are moved to other descriptors before the function is imported. A function can
still write to them, or close them. The key, random bytes of the executor for this process alone, separates
replies from anything else on the stream. Each call is acknowledged before it starts, so the executor knows
which calls were running when a process was lost. A process whose protocol streams are closed exits. A third
stream, the lifeline, carries no data: when its other end closes, the whole process group is killed. So a
host ends with its executor, also while a function holds the interpreter in a tight loop.

Calling convention: the first parameter is the prompt (for an evaluator, the output). Every other parameter
is passed by its name: `case` (the case, as a dict), `fields` (all names of a template, as a dict),
`history` (earlier turns), or any of the fields. `**anything` receives all fields.
"""

from __future__ import annotations

import sys

AT_START = frozenset(sys.modules)
"""Modules that an interpreter has loaded before its first line: no file of the user can shadow them."""

# ruff: noqa: E402 - the line above must come first
import asyncio
import concurrent.futures
import faulthandler
import fcntl
import importlib
import inspect
import json
import os
import signal
import struct
import threading
import time
import traceback
from typing import Any

LOADED_LATE = ("ast", "concurrent.futures.thread", "linecache", "queue", "textwrap", "tokenize")
"""Modules that asyncio and traceback import lazily."""
for _name in LOADED_LATE:
    importlib.import_module(_name)

KEY_BYTES = 16
LENGTH = struct.Struct(">I")
LONGEST_ERROR = 100_000
"""Characters of an exception that are sent; the executor redacts secrets, then cuts it shorter."""
NO_PROTOCOL = 70
"""Exit code of a host that lost its protocol streams."""
STREAM_CHECK_SECONDS = 0.5
TRACEBACK_LINES = 8
OURS = (__file__, "<frozen importlib")
"""Files whose frames are left out of tracebacks."""


def main(function: str, workdir: str, *, max_text: int, lifeline: int) -> None:
    """Serve until the requests end."""
    requests = os.dup(0)
    replies = ReplyStream(os.dup(1), os.read(requests, KEY_BYTES))
    _end_with_the_lifeline(lifeline)
    _redirect_output()
    _look_first_in(workdir or os.getcwd())  # noqa: PTH109 - pathlib would be one more import at each start
    try:
        target = _find(function)
    except BaseException as error:  # noqa: BLE001 - an import may raise anything, SystemExit included
        replies.send({"broken": _describe(error)})
        return
    is_async = inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(
        getattr(target, "__call__", None)  # noqa: B004 - an object with an async __call__ counts, too
    )
    host = FunctionServer(target, replies, max_text)
    replies.send({"ready": True, "async": is_async})
    if is_async:
        asyncio.run(host.serve_async(requests))
    else:
        host.serve(requests)


def check(workdir: str, functions: list[str]) -> None:
    """Import functions without calling them; prints a JSON object of the errors."""
    replies = os.dup(1)
    _redirect_output()
    _look_first_in(workdir)
    broken: dict[str, str] = {}
    for function in functions:
        try:
            _find(function)
        except BaseException as error:  # noqa: BLE001 - as in `main`
            broken[function] = _describe(error)
    os.write(replies, json.dumps(broken).encode())
    os._exit(0)  # threads of the user's need not end


def _end_with_the_lifeline(lifeline: int) -> None:
    threading.Thread(target=_await_end, args=(lifeline,), daemon=True).start()
    if hasattr(fcntl, "F_SETSIG"):  # Linux: the kernel itself does it, also where no thread gets a turn
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _await_end(lifeline: int) -> None:
    while os.read(lifeline, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def _redirect_output() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # what a script starts with
    faulthandler.enable(all_threads=False)


def _look_first_in(workdir: str) -> None:
    """Put the function's directory in front, in the place of this script's where that is on the path."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as in `main`
    if sys.path and sys.path[0] and os.path.abspath(sys.path[0]) == here:  # noqa: PTH100 - as above
        del sys.path[0]
    sys.path.insert(0, workdir)
    for name in _modules_in(workdir) & sys.modules.keys() - AT_START - {"__main__"}:
        for loaded in [each for each in sys.modules if each == name or each.startswith(name + ".")]:
            del sys.modules[loaded]


def _modules_in(workdir: str) -> set[str]:
    try:
        with os.scandir(workdir) as entries:
            return {name for entry in entries if (name := _module_name(entry))}
    except OSError:
        return set()


def _module_name(entry: os.DirEntry[str]) -> str | None:
    if entry.name.endswith(".py"):
        return entry.name[: -len(".py")]
    return entry.name if os.path.isfile(os.path.join(entry.path, "__init__.py")) else None  # noqa: PTH113, PTH118


def _find(function: str) -> Any:  # noqa: ANN401 - anything that can be called
    module, _, path = function.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"{function} is not a function")
    return found


class ReplyStream:
    """The stream of replies: each message behind the key, which separates it from anything else."""

    def __init__(self, descriptor: int, key: bytes) -> None:
        self.descriptor, self._key = descriptor, key

    def send(self, message: dict[str, Any], *, value: str | None = None) -> None:
        """Write one message; a value that is JSON already is put in as it is."""
        body = json.dumps(message)
        if value is not None:
            body = body.replace('"value": null', f'"value": {value}', 1)
        rest = memoryview(self._key + LENGTH.pack(len(body)) + body.encode())
        try:
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
        except OSError:  # the function closed it: without an end of the process its calls would wait for it
            os._exit(NO_PROTOCOL)


async def _end_without_streams(*descriptors: int) -> None:
    """End the process once a descriptor is closed or leads elsewhere: the event loop would not notice."""
    streams = [_identity(descriptor) for descriptor in descriptors]
    while streams == [_identity(each) for each in descriptors]:  # noqa: ASYNC110 - the kernel sends no event
        await asyncio.sleep(STREAM_CHECK_SECONDS)
    os._exit(NO_PROTOCOL)


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


class FunctionServer:
    """Serves calls of one function."""

    def __init__(self, function: Any, replies: ReplyStream, max_text: int) -> None:  # noqa: ANN401 - as above
        self._function, self._replies, self._max_text = function, replies, max_text
        self._tasks: dict[int, asyncio.Task[None]] = {}
        try:
            self._parameters = list(inspect.signature(function).parameters.values())[1:]
        except (TypeError, ValueError):  # some builtins have no signature
            self._parameters = []

    def serve(self, requests: int) -> None:
        """Call a plain function, one request after the other."""
        stream = os.fdopen(requests, "rb")
        while header := stream.read(LENGTH.size):
            request = json.loads(stream.read(*LENGTH.unpack(header)))
            self._replies.send({"started": request["call"]})
            started = time.perf_counter()
            try:
                self._returned(request["call"], self._call(request), started)
            except BaseException as error:  # noqa: BLE001 - SystemExit included
                self._raised(request["call"], error)

    async def serve_async(self, requests: int) -> None:
        """Call a coroutine function, many requests at a time."""
        watch = asyncio.create_task(_end_without_streams(requests, self._replies.descriptor))
        reader = asyncio.StreamReader(limit=2**24)
        stream = os.fdopen(requests, "rb", buffering=0)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), stream
        )
        while not watch.done():
            (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
            request = json.loads(await reader.readexactly(length))
            if number := request.get("cancel"):
                if task := self._tasks.get(number):
                    task.cancel()
                continue
            self._tasks[request["call"]] = asyncio.create_task(self._answer(request))

    async def _answer(self, request: dict[str, Any]) -> None:
        self._replies.send({"started": request["call"]})
        started = time.perf_counter()
        try:
            self._returned(request["call"], await self._call(request), started)
        except BaseException as error:  # noqa: BLE001 - SystemExit would end the loop
            self._raised(request["call"], error)
        finally:
            self._tasks.pop(request["call"], None)

    def _call(self, request: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever it returns
        offered = {**request["fields"], **request["offered"], "fields": request["fields"]}
        named = {q.name: offered[q.name] for q in self._parameters if q.name in offered and _by_name(q)}
        if any(q.kind is q.VAR_KEYWORD for q in self._parameters):
            named = {**request["fields"], **named}
        return self._function(request["subject"], **named)

    def _returned(self, number: int, value: Any, started: float) -> None:  # noqa: ANN401 - as above
        seconds = time.perf_counter() - started
        if isinstance(value, str):
            self._refuse_long(len(value))
        body = _written(value)
        self._refuse_long(len(body) // 12)  # one character is at most twelve of them
        self._replies.send({"call": number, "seconds": seconds, "value": None}, value=body)

    def _refuse_long(self, characters: int) -> None:
        if characters > self._max_text:
            raise TooLarge(f"the function returned more than {self._max_text:,} characters")

    def _raised(self, number: int, error: BaseException) -> None:
        transient = getattr(error, "transient", isinstance(error, PASSING))
        kind = "too_large" if isinstance(error, TooLarge) else "python"
        sys.stdout.flush()
        self._replies.send(
            {"call": number, "fault": kind, "transient": transient is True, "message": _describe(error)}
        )


PASSING = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError, ConnectionError)
"""Exceptions that another call may not meet; before Python 3.11 the time-outs are three classes."""


class TooLarge(Exception):  # noqa: N818 - what is wrong with a returned value
    """The value that a function returned is too large."""


class NotJson(Exception):  # noqa: N818 - as above
    """The value that a function returned can't be serialised."""


def _written(value: Any) -> str:  # noqa: ANN401 - as above
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise NotJson(f"the function returned a value that is not JSON: {error}") from None


def _by_name(parameter: inspect.Parameter) -> bool:
    return parameter.kind in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}


def _describe(error: BaseException) -> str:
    """Return the type and message of an exception, and the last lines of its traceback."""
    message = "".join(traceback.format_exception_only(type(error), error))[:LONGEST_ERROR].strip()
    theirs = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(OURS)]
    lines = "".join(traceback.format_list(theirs)).splitlines()[-TRACEBACK_LINES:]
    return "\n".join([message, *(line[:300] for line in lines)])


if __name__ == "__main__" and sys.argv[1] == "--check":
    check(sys.argv[2], sys.argv[3:])
elif __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], max_text=int(sys.argv[3]), lifeline=int(sys.argv[4]))
