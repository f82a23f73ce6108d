"""What is particular to one server, and what follows from that alone."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scoreline.local.embedded.errors import EmbeddedServerError, advice, log_tail
from scoreline.private_files import PRIVATE_UMASK, open_private

_LOG_READ = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """What is particular to one kind of server."""

    name: str
    home: Path
    data: Path
    pid_file: Path
    command: list[str]
    stop_signal: signal.Signals
    prepare: Callable[["Runner"], None]
    answers: Callable[[], bool]
    recover: Callable[[str], bool] = lambda _: False
    """Repair what the log of a failed start names; True if the server is to be started again."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs programs of one server, which all inherit its lock and write to its log."""

    recipe: ServerSpec
    lock: int

    def start(self, command: list[str], *, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """Run a program in a session of its own, so that no terminal's signal reaches it."""
        with open_private(log_path(self.recipe)) as log:
            return subprocess.Popen(  # noqa: S603 - binaries of our wheels, arguments of our own
                command,
                stdin=stdin,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.recipe.home,
                env=_environment(),
                pass_fds=(self.lock,),
                start_new_session=True,
                umask=PRIVATE_UMASK,
            )

    def finish(self, step: str, command: list[str], *, stdin: str = "") -> None:
        """Run a program to its end, which must be a good one."""
        process = self.start(command, stdin=subprocess.PIPE)
        process.communicate(stdin.encode())
        if process.returncode != 0:
            raise failure(self.recipe, f"{step} failed (exit code {process.returncode}).")


def failure(recipe: ServerSpec, problem: str, *, since: int = 0) -> EmbeddedServerError:
    """The error of one server, with the end of its log."""
    log = log_tail(log_path(recipe), since)
    return EmbeddedServerError(recipe.name, problem, log=log, advice=advice(recipe.home, log))


def read_log(recipe: ServerSpec, since: int) -> str:
    """Return what the log of a server gained after position `since`, or the end of it."""
    log = log_path(recipe)
    with log.open("rb") as stream:
        stream.seek(max(since, log.stat().st_size - _LOG_READ))
        return stream.read().decode(errors="replace")


def log_path(recipe: ServerSpec) -> Path:
    """The file that takes the server's output."""
    return recipe.home / f"{recipe.name.lower()}.log"


def _environment() -> dict[str, str]:
    # PG* variables of the user would reconfigure the server; macOS needs a valid locale set.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return kept | {"LC_ALL": "C"}


def living_pid(recipe: ServerSpec) -> int | None:
    """The recorded pid, if it is that of a server on this very data directory.

    A number alone proves nothing: the kernel hands out old ones again.
    """
    try:
        pid = int(recipe.pid_file.read_text().split(maxsplit=1)[0])
    except (OSError, ValueError, IndexError):
        return None
    return pid if f" {recipe.data} " in f"{_command_line(pid)} " else None


def _command_line(pid: int) -> str:
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
        except OSError:
            return ""
    command = [shutil.which("ps") or "/bin/ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
