"""The status file of the guardian: what one process publishes, every user reads."""

from pathlib import Path

from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.local.embedded.status import publish, read
from scoreline.servers.addresses import Servers


def test_ready_servers_are_read_back(tmp_path: Path):
    """The draft is gone: readers see the file whole or not at all."""
    servers = Servers("unix:///a", "postgresql:///b")
    publish(tmp_path / "status.json", servers, guardian=7)
    assert read(tmp_path / "status.json") == servers
    assert [path.name for path in tmp_path.iterdir()] == ["status.json"]


def test_an_error_is_read_back_with_its_advice(tmp_path: Path):
    """The user's command prints it as the guardian would; it replaces servers that were ready before."""
    error = EmbeddedServerError("Valkey", "ended.", advice="read the logs", log="  no memory")
    publish(tmp_path / "status.json", Servers("unix:///a", "postgresql:///b"), guardian=7)
    publish(tmp_path / "status.json", error, guardian=7)
    found = read(tmp_path / "status.json")
    assert isinstance(found, EmbeddedServerError)
    assert str(found) == str(error)


def test_there_is_no_status_before_the_first(tmp_path: Path):
    """A user waits for it."""
    assert read(tmp_path / "status.json") is None
