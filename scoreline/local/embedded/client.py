"""A client of the embedded servers: takes the users' lock, ensures a guardian, waits for its status."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from scoreline.local.embedded.damage import take_notices
from scoreline.local.embedded.errors import EmbeddedServerError, advice, file_error, log_tail
from scoreline.local.embedded.layout import Layout
from scoreline.local.embedded.locks import PollDeadline, set_linger, try_lock
from scoreline.local.embedded.status import read
from scoreline.private_files import PRIVATE_UMASK, default_root, open_private
from scoreline.servers.addresses import Servers

_START_TIMEOUT = 150.0
_ATTEMPTS = 3


@contextmanager
def embedded_servers(root: Path | None = None, *, linger: float = 0.0) -> Iterator[Servers]:
    """Both servers, ready; they stop `linger` seconds after the last process that uses them is gone."""
    home = root or default_root()
    try:
        layout = Layout.under(home)
        membership = _join(layout)
        set_linger(membership, linger)
    except OSError as error:
        raise file_error(home, error) from error
    try:
        servers = _await_servers(layout)
        _print_notices(layout)
        yield servers
    finally:
        _print_notices(layout)
        _leave(layout, membership)


def _print_notices(layout: Layout) -> None:
    for notice in take_notices(layout.home):
        print(notice, file=sys.stderr, flush=True)  # noqa: T201 - whichever command it is


def _join(layout: Layout) -> int:
    """Become a user; while a guardian is stopping, wait until it has."""
    deadline = PollDeadline(_START_TIMEOUT)
    while (membership := try_lock(layout.users_lock, fcntl.LOCK_SH)) is None:
        if not deadline.pause():
            raise _failure(layout, "the servers of the previous command do not stop.")
    return membership


def _await_servers(layout: Layout) -> Servers:
    deadline, attempts = PollDeadline(_START_TIMEOUT), 0
    while True:
        if (lock := try_lock(layout.guardian_lock)) is not None:
            attempts += 1
            _launch(layout, lock, attempts)
        # Taking the lock clears the status, so the status read here is that of a live guardian.
        match read(layout.status):
            case Servers() as servers:
                return servers
            case EmbeddedServerError() as error:
                raise error
        if not deadline.pause():
            raise _failure(layout, "the guardian does not report.")


def _launch(layout: Layout, lock: int, attempts: int = 1) -> None:
    """Start a guardian that inherits the lock, and with it the exclusive right to be one."""
    module = [sys.executable, "-P", "-m", "scoreline.local.embedded.guardian"]
    try:
        if attempts > _ATTEMPTS:
            raise _failure(layout, "the guardian ends as soon as it starts.")
        layout.status.unlink(missing_ok=True)
        with open_private(layout.guardian_log, truncate=True) as log:
            subprocess.run(  # noqa: S603 - this very program
                [*module, str(layout.home), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=Path(__file__).parents[3],
                pass_fds=(lock,),
                start_new_session=True,
                umask=PRIVATE_UMASK,
                check=False,
            )
    except OSError as error:
        raise file_error(layout.home, error) from error
    finally:
        os.close(lock)


def _leave(layout: Layout, membership: int) -> None:
    """Give up the membership; a killed guardian is replaced first, to stop what it left running."""
    with suppress(OSError, EmbeddedServerError):
        if layout.status.exists() and (lock := try_lock(layout.guardian_lock)) is not None:
            _launch(layout, lock)
    os.utime(membership)
    os.close(membership)


def _failure(layout: Layout, problem: str) -> EmbeddedServerError:
    log = log_tail(layout.guardian_log)
    return EmbeddedServerError("servers", problem, log=log, advice=advice(layout.home, log))
