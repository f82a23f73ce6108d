"""`scoreline coordinator start`: its name, and its end with the command that started it."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator.settings import CoordinatorSettings
from scoreline.cli.coordinator import app
from scoreline.servers.addresses import Servers

Start = Callable[..., CoordinatorSettings]


@contextmanager
def lent(*_: object, **__: object) -> Iterator[Servers]:
    """Lend servers that are not used."""
    yield Servers("redis://localhost", "postgresql://localhost/x")


@pytest.fixture
def followed() -> list[bool]:
    """Collect an entry for each process that ends with its parent."""
    return []


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, followed: list[bool]) -> Start:
    """Start a coordinator that ends at once; returns its settings."""
    started: list[CoordinatorSettings] = []

    async def run(_site: object, wanted: CoordinatorSettings) -> None:
        started.append(wanted)

    replaced: dict[str, Any] = {
        "coordinator.app.run": run,
        "scoreline.local.servers.ready_servers": lent,
        "scoreline.observability.wiring.telemetry_for": lent,
        "scoreline.observability.logs.configure": lambda _: None,
        "scoreline.local.processes.end_with_parent": lambda: followed.append(True),
    }
    for name, value in replaced.items():
        monkeypatch.setattr(name, value)

    def starting(*flags: str) -> CoordinatorSettings:
        ran = CliRunner().invoke(app, ["start", *flags])
        assert ran.exit_code == 0, ran.output
        return started.pop()

    return starting


def test_a_coordinator_is_named_after_its_host(start: Start):
    """Unless it is given a name."""
    assert start().name == f"coordinator@{socket.gethostname()}"
    assert start("--name", "b").name == "b"


def test_flags_are_settings_of_the_coordinator(start: Start):
    """The run of a local batch, and how many evaluations are published."""
    found = start("--run", "run-1", "--window", "5")
    assert (found.run_id, found.window) == ("run-1", 5)


def test_only_a_child_ends_with_its_parent(start: Start, followed: list[bool]):
    """A service has no parent to follow."""
    start()
    assert followed == []
    start("--follow-stdin")
    assert followed == [True]
