"""SIGINT before a command has started anything: one line and exit code 130, never a traceback.

While modules are imported the handler ends the process: nothing has to be released yet. From then on it
prints its line once and raises `KeyboardInterrupt`, so that whatever was started is released.
"""

import os
import signal
from pathlib import PurePath
from typing import Any, NoReturn

INTERRUPTED = 130
"""The exit code of a command that was interrupted."""
NOTHING_ACCEPTED = "interrupted: no batch was accepted, and nothing runs"


class StartupInterrupt:
    """Handles SIGINT from the first import of the command until a batch is accepted."""

    def __init__(self) -> None:
        self.received = False
        self._line = ""

    def install(self, argv: list[str]) -> None:
        """Handle SIGINT while the installed command imports its modules; in no other process."""
        is_command = PurePath(argv[0] if argv else "").name == "scoreline"
        if is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._line = NOTHING_ACCEPTED if argv[1:3] == ["batch", "run"] else "interrupted"
            signal.signal(signal.SIGINT, self._end)

    def imported(self) -> None:
        """Raise `KeyboardInterrupt` from now on; only `batch run` has a line to print first."""
        if self._line == NOTHING_ACCEPTED:
            signal.signal(signal.SIGINT, self._raise)
        elif self._line:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def accepted(self) -> None:
        """Print nothing any more: there is a batch."""
        self._line = ""

    def _end(self, *_: Any) -> NoReturn:  # noqa: ANN401 - the signal and its frame
        self._print()
        os._exit(INTERRUPTED)

    def _raise(self, *_: Any) -> NoReturn:  # noqa: ANN401 - as above
        if not self.received:
            self._print()
        self.received = True
        raise KeyboardInterrupt

    def _print(self) -> None:
        if self._line:
            try:
                os.write(2, f"{self._line}\n".encode())  # a stream may be locked by what was interrupted
            except OSError:
                return


STARTUP_INTERRUPT = StartupInterrupt()
"""The one of this process: signal handlers are global as well."""
