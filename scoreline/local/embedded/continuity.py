"""The epoch of the embedded Valkey server across a clean stop.

`append.lua` builds the epoch from a random key and the server's run id: a server that starts again may
have lost its last writes, and claims made in them. A server that ended with exit code 0 after SIGTERM has
written and synchronised its whole append-only file, so it lost none. The guardian, its parent, is the one
process that sees the exit code. It leaves the run id in a file, with size and time of each file of the
log; the guardian that starts the server again removes the file and binds each epoch key to the new run id.
After any other end there is no file, and every epoch changes; so it does where the log was changed since.
"""

from pathlib import Path

from scoreline.local.embedded.valkey_client import ValkeyClient, ValkeyError

RUN_ID_LENGTH = 12
"""Characters of the run id that `append.lua` puts into an epoch."""
_EPOCH_KEYS = "eval:{*}:epoch"


class EpochContinuity:
    """Carries the epochs of one data directory over a clean stop."""

    def __init__(self, home: Path) -> None:
        self._record = home / "valkey.stopped"
        self._log = home / "valkey" / "appendonlydir"
        self._run_id = ""

    def server_starting(self) -> None:
        """Forget the clean stop if the log is not as it was left: the server may load only a part of it."""
        if self._record.exists() and self._record.read_text().partition("\n")[2] != self._log_files():
            self._record.unlink()

    def server_started(self, url: str) -> None:
        """Bind the epochs to the running server, if the one before it was stopped cleanly."""
        try:
            with ValkeyClient(url) as client:
                run_id = client.run_id()[:RUN_ID_LENGTH]
                if run_id != self._run_id:
                    self._bind(client, run_id)
        except (ValkeyError, OSError):
            return  # the server is gone again: the guardian notices, and its epochs change

    def _bind(self, client: ValkeyClient, run_id: str) -> None:
        self._run_id = run_id
        last = self._record.read_text().partition("\n")[0] if self._record.exists() else ""
        self._record.unlink(missing_ok=True)  # first: it holds for one start only
        if not last:
            return
        for key in client.keys(_EPOCH_KEYS):
            if value := client.call(b"GET", key):
                client.call(b"SET", key, bound(value.decode(), last=last, run_id=run_id).encode())

    def server_stopped(self, exit_code: int | None) -> None:
        """Leave the run id behind if the server ended cleanly."""
        if exit_code == 0 and self._run_id:
            self._record.write_text(f"{self._run_id}\n{self._log_files()}")
        self._run_id = ""

    def _log_files(self) -> str:
        files = sorted(self._log.glob("*"))
        return "".join(f"{each.name} {each.stat().st_size} {each.stat().st_mtime_ns}\n" for each in files)


def bound(value: str, *, last: str, run_id: str) -> str:
    """Return an epoch key's value that keeps, under a new run id, the epoch it had under the last one."""
    random, *binding = value.split("/")
    kept = binding[1] if len(binding) == 2 and binding[0] == last else last
    return f"{random}/{run_id}/{kept}"
