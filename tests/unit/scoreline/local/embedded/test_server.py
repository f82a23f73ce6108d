"""The life of an embedded server: started once, started again when it was killed, else a failure."""

from pathlib import Path

import pytest

from scoreline.local.embedded import server as module
from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.local.embedded.server import Server
from tests.unit.scoreline.local.embedded.specs import shell

SERVE = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"


def log_of(home: Path) -> str:
    """Return the output of all starts."""
    return (home / "fake.log").read_text()


def test_a_server_that_runs_is_not_started_again(tmp_path: Path):
    """Its clean end is awaited, and its exit code known."""
    server = Server(shell(tmp_path, SERVE, answers=lambda: "ready" in log_of(tmp_path)))
    server.start()
    server.wait_ready()
    server.start()
    assert (server.alive(), server.exit_code) == (True, None)
    server.request_stop()
    server.wait_stopped()
    assert (server.exit_code, log_of(tmp_path)) == (0, "ready\n")


def test_a_server_that_ends_while_it_starts_is_a_failure(tmp_path: Path):
    """The error has the end of its log, and nothing of earlier starts."""
    (tmp_path / "fake.log").write_text("earlier\n")
    server = Server(shell(tmp_path, "echo no memory; exit 1"))
    server.start()
    with pytest.raises(EmbeddedServerError) as error:
        server.wait_ready()
    assert error.value.problem == "ended while it was starting."
    assert error.value.log == "  no memory"


def test_a_server_that_was_killed_is_started_again(tmp_path: Path):
    """Killed from outside, it may well be able to run."""
    once = f"test -e {tmp_path}/killed || {{ touch {tmp_path}/killed; kill -KILL $$; }}; "
    server = Server(shell(tmp_path, once + SERVE, answers=lambda: "ready" in log_of(tmp_path)))
    server.start()
    server.wait_ready()
    assert server.alive()
    server.request_stop()
    server.wait_stopped()


def test_what_a_failed_start_names_is_repaired_once(tmp_path: Path):
    """A server that fails again has another cause."""
    repaired: list[str] = []

    def recover(log: str) -> bool:
        repaired.append(log)
        return True

    server = Server(shell(tmp_path, "echo damaged; exit 1", recover=recover))
    server.start()
    with pytest.raises(EmbeddedServerError, match="ended while it was starting"):
        server.wait_ready()
    assert repaired == ["damaged\n"]
    assert log_of(tmp_path) == "damaged\ndamaged\n"


def test_a_program_that_is_missing_is_a_failure_and_frees_the_lock(tmp_path: Path):
    """The next start fails in the same way, and does not wait for the lock."""
    spec = shell(tmp_path, "")
    spec.command[0] = str(tmp_path / "missing")
    server = Server(spec)
    for _ in range(2):
        with pytest.raises(EmbeddedServerError, match="cannot be started"):
            server.start()


def test_a_long_log_is_put_aside_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One earlier log is kept."""
    monkeypatch.setattr(module, "_LOG_LIMIT", 10)
    (tmp_path / "fake.log").write_text("longer than ten\n")
    server = Server(shell(tmp_path, "echo new; exit 1"))
    server.start()
    with pytest.raises(EmbeddedServerError):
        server.wait_ready()
    assert log_of(tmp_path) == "new\n"
    assert (tmp_path / "fake.log.old").read_text() == "longer than ten\n"
