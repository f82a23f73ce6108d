"""Interruption of a run by a signal: a state that is checked at every step.

A cancelled task can lose its cancellation: a database driver that cancels its query first may raise another
error instead. So the first SIGINT, SIGTERM or SIGHUP only sets a flag and wakes the event loop; whatever
waits, waits no longer than it takes to check the flag. The second signal ends the process at once.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, Self

from scoreline.startup_interrupt import INTERRUPTED

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STANDARD_STREAMS = (0, 1, 2)

Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class InterruptedRun(Exception):  # noqa: N818 - what happened
    """The run was interrupted while nothing had been accepted yet."""


class Interruption:
    """Receives signals from `with` to its end."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        """The first signal."""
        self._wake: Callable[[], object] | None = None
        self._on_second: Callable[[], None] | None = None
        self._before: dict[signal.Signals, Handler] = {}
        self._terminals: list[int] = []

    def __enter__(self) -> Self:
        self._terminals = [number for number in STANDARD_STREAMS if _is_terminal(number)]
        in_main = threading.current_thread() is threading.main_thread()  # others can't receive signals
        for number in SIGNALS if in_main else ():
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise `InterruptedRun` if a signal was received."""
        if self.received:
            raise InterruptedRun

    @contextmanager
    def announced(self, on_first: Callable[[], None], on_second: Callable[[], None]) -> Iterator[None]:
        """Call back in this event loop after the first signal, also an earlier one, and the second."""
        loop = asyncio.get_running_loop()
        self._wake = lambda: loop.call_soon_threadsafe(on_first)
        self._on_second = on_second
        if self.received:
            loop.call_soon(on_first)
        try:
            yield
        finally:
            self._wake = self._on_second = None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._leave_terminal()
        if self.received is None:
            self.received = signal.Signals(number)
            if self._wake:
                self._wake()
        elif number != signal.SIGHUP:  # a shell that loses its terminal repeats what the kernel has sent
            self._end_at_once()

    def _end_at_once(self) -> NoReturn:
        on_second, self._on_second = self._on_second, None
        try:
            if on_second:
                on_second()
        finally:
            os._exit(INTERRUPTED)

    def _leave_terminal(self) -> None:
        """Write to nothing instead of a terminal that is gone: there, each write fails."""
        while self._terminals:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_RDWR), self._terminals.pop())


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False
