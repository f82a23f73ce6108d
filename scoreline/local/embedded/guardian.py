"""The guardian process: owns both servers for as long as anybody uses them, and as they linger after.

`python -m scoreline.local.embedded.guardian HOME LOCK`, where LOCK is the inherited descriptor that
holds the guardian's lock: it was taken before this process existed, so there is only one of it.
"""

import fcntl
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from scoreline.local.embedded.continuity import EpochContinuity
from scoreline.local.embedded.errors import EmbeddedServerError, file_error
from scoreline.local.embedded.layout import Layout
from scoreline.local.embedded.locks import linger_remaining
from scoreline.local.embedded.postgres import postgres, postgres_url
from scoreline.local.embedded.server import Server
from scoreline.local.embedded.status import publish
from scoreline.local.embedded.valkey import valkey, valkey_url
from scoreline.servers.addresses import Servers

_WATCH = 0.05
_RETRY = 1.0
_LINGER_CHECK = 0.5
"""Seconds between two looks at whether the data directory still exists."""


class Guardian:
    """Keeps both servers up until the last user is gone, and for as long after as that user set."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._servers: list[Server] = []
        self._unused = threading.Event()
        self._continuity = EpochContinuity(layout.home)

    def run(self) -> None:
        """Serve until the last user is gone, then stop the servers cleanly."""
        threading.Thread(target=self._await_last_user, daemon=True).start()
        try:
            while not self._unused.is_set():
                outcome = self._bring_up()
                publish(self._layout.status, outcome, guardian=os.getpid())
                self._watch(outcome)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self._withdraw()
            self._stop()

    def _await_last_user(self) -> None:
        descriptor = os.open(self._layout.users_lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        while remaining := linger_remaining(descriptor):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            time.sleep(min(remaining, _LINGER_CHECK))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Never unlocked: a user who comes now waits until this process, and so its servers, ended.
        self._unused.set()

    def _bring_up(self) -> Servers | EmbeddedServerError:
        self._withdraw()
        try:
            sockets = self._layout.sockets()
            self._continuity.server_starting()
            for server in self._pair(sockets):
                server.start()
            for server in self._pair(sockets):
                server.wait_ready()
            self._continuity.server_started(valkey_url(sockets))
        except EmbeddedServerError as error:
            return error
        except OSError as error:
            return file_error(self._layout.home, error)
        return Servers(redis_url=valkey_url(sockets), postgres_url=postgres_url(sockets))

    def _pair(self, sockets: Path) -> list[Server]:
        if not self._servers:
            home = self._layout.home
            self._servers = [Server(valkey(home, sockets)), Server(postgres(home, sockets))]
        return self._servers

    def _watch(self, outcome: Servers | EmbeddedServerError) -> None:
        if isinstance(outcome, EmbeddedServerError):
            print(outcome, flush=True)  # noqa: T201 - standard output is the guardian's log
            self._unused.wait(_RETRY)
            return
        while not self._unused.wait(_WATCH):
            if not all(server.alive() for server in self._servers):
                return

    def _withdraw(self) -> None:
        self._layout.status.unlink(missing_ok=True)

    def _stop(self) -> None:
        # Also those never brought up here: a guardian may come only to end what another left.
        with suppress(EmbeddedServerError, OSError):
            for server in self._pair(self._layout.sockets()):
                server.request_stop()
        for server in self._servers:
            server.wait_stopped()
        if self._servers:
            self._continuity.server_stopped(self._servers[0].exit_code)


def main() -> None:
    """Become an orphan, so that no user has to bury the guardian, and guard."""
    home, lock = Path(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(lock, False)  # noqa: FBT003 - takes no keyword
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    Guardian(Layout(home)).run()


if __name__ == "__main__":
    main()
