"""The embedded Valkey: what it is started with, and which files it may replace."""

import socket
from pathlib import Path
from threading import Thread

import pytest

from scoreline.local.embedded.locks import try_lock
from scoreline.local.embedded.server_spec import Runner
from scoreline.local.embedded.valkey import valkey, valkey_url

CRASHED = "1:M # valkey crashed by signal: 4\n"


def test_the_log_is_durable_and_no_port_is_open(tmp_path: Path):
    """An acknowledged event survives; keys are never evicted."""
    command = valkey(tmp_path, tmp_path).command
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert (options["--appendonly"], options["--maxmemory-policy"], options["--port"]) == (
        "yes",
        "noeviction",
        "0",
    )
    assert (options["--unixsocketperm"], options["--dir"]) == ("700", str(tmp_path / "valkey"))


def test_the_url_of_a_folder_with_spaces_is_quoted():
    """Clients parse it."""
    assert valkey_url(Path("/my data")) == "unix:///my%20data/valkey.sock"


def test_only_files_that_the_log_names_as_damaged_are_moved_aside(tmp_path: Path):
    """An empty directory can't be the cause, and other failures leave the files alone."""
    spec = valkey(tmp_path, tmp_path)
    assert not spec.recover(CRASHED)
    appended = spec.data / "appendonlydir"
    appended.mkdir(parents=True)
    (appended / "a.manifest").touch()
    assert not spec.recover("1:M # No space left on device\n")
    assert appended.exists()
    assert spec.recover(CRASHED)
    assert not appended.exists()
    assert len(list(tmp_path.glob("valkey.damaged-*/appendonlydir/a.manifest"))) == 1


def test_the_pid_of_an_earlier_server_is_removed_before_the_start(tmp_path: Path):
    """The directory is the owner's alone."""
    spec, lock = valkey(tmp_path, tmp_path), try_lock(tmp_path / "lock")
    assert lock is not None
    spec.pid_file.write_text("1")
    spec.prepare(Runner(spec, lock))
    assert not spec.pid_file.exists()
    assert spec.data.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("reply", "is_ready"), [(b"+PONG\r\n", True), (b"-LOADING data\r\n", False), (b"", False)]
)
def test_a_server_is_ready_once_it_answers_a_ping(tmp_path: Path, reply: bytes, is_ready: bool):
    """One that still loads its data is not; nor is a socket that nothing listens on."""
    spec = valkey(tmp_path, tmp_path)
    assert not spec.answers()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "valkey.sock"))
        server.listen()

        def serve() -> None:
            with server.accept()[0] as connection:
                connection.recv(64)
                connection.sendall(reply)

        thread = Thread(target=serve)
        thread.start()
        assert spec.answers() is is_ready
        thread.join()
