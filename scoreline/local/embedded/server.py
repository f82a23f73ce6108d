"""One embedded server: started or adopted, watched and stopped in the same way, whatever it is."""

import os
import signal
import subprocess
from pathlib import Path

from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.local.embedded.locks import PollDeadline, try_lock
from scoreline.local.embedded.server_spec import Runner, ServerSpec, failure, living_pid, log_path, read_log

_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 60.0
_LOG_LIMIT = 10 * 1024 * 1024


class Server:
    """The life of one server under a guardian."""

    def __init__(self, recipe: ServerSpec) -> None:
        self._recipe = recipe
        self._process: subprocess.Popen[bytes] | None = None
        self._log_before = 0
        self._has_recovered = False

    def start(self) -> None:
        """Have the server running: ours, the one a killed guardian left, or a new one."""
        if self.alive():
            return
        self._process = None
        self._log_before = _bounded_log(log_path(self._recipe))
        lock = self._claim()
        if lock is None:
            return
        try:
            runner = Runner(self._recipe, lock)
            self._recipe.prepare(runner)
            self._process = runner.start(self._recipe.command)
        except OSError as error:
            raise self._failure(f"cannot be started ({error}).") from error
        finally:
            os.close(lock)

    def wait_ready(self) -> None:
        """Return when the server answers; raise when it ended instead, or takes too long."""
        deadline, self._has_recovered = PollDeadline(_START_TIMEOUT), False
        while not self._recipe.answers():
            if not self.alive():
                self._start_again()
            if not deadline.pause():
                raise self._failure(f"does not answer after {_START_TIMEOUT:.0f} s.")

    def _start_again(self) -> None:
        # A server killed from outside may well be able to run; any other exit is a failure.
        has_failed = self._process is not None and self._process.returncode != -signal.SIGKILL
        if has_failed and not self._recovers():
            raise self._failure("ended while it was starting.")
        self.start()

    def _recovers(self) -> bool:
        """Repair what the failed start names, once: a server that fails again has another cause."""
        if self._has_recovered:
            return False
        self._has_recovered = self._recipe.recover(read_log(self._recipe, self._log_before))
        return self._has_recovered

    def alive(self) -> bool:
        """Whether the server process exists, be it a child or adopted."""
        if self._process is not None:
            return self._process.poll() is None
        return living_pid(self._recipe) is not None

    @property
    def exit_code(self) -> int | None:
        """How the server ended; None while it lives, or where another process started it."""
        return self._process.returncode if self._process is not None else None

    def request_stop(self) -> None:
        """Ask for a clean end, without waiting for it."""
        self._signal(self._recipe.stop_signal)

    def wait_stopped(self) -> None:
        """Return when the server is gone, by force if it takes too long."""
        deadline = PollDeadline(_STOP_TIMEOUT)
        while self.alive():
            if not deadline.pause():
                self._signal(signal.SIGQUIT)
                deadline = PollDeadline(_STOP_TIMEOUT)

    def _claim(self) -> int | None:
        """The server's lock; None if a living server was found, which is hereby adopted.

        Every process of a server inherits its lock. Held without a server to be seen, it is in the
        hands of one that is just starting or of the last workers of one that was killed: wait.
        """
        deadline = PollDeadline(_START_TIMEOUT)
        while living_pid(self._recipe) is None:
            lock = try_lock(self._recipe.home / f"{self._recipe.name.lower()}.lock")
            if lock is not None:
                return lock
            if not deadline.pause():
                raise self._failure("processes of an earlier server do not end.")
        return None

    def _signal(self, number: signal.Signals) -> None:
        pid = self._process.pid if self._process is not None else living_pid(self._recipe)
        if pid is not None and self.alive():
            os.kill(pid, number)

    def _failure(self, problem: str) -> EmbeddedServerError:
        return failure(self._recipe, problem, since=self._log_before)


def _bounded_log(log: Path) -> int:
    size = log.stat().st_size if log.exists() else 0
    if size <= _LOG_LIMIT:
        return size
    log.replace(log.with_suffix(".log.old"))
    return 0
