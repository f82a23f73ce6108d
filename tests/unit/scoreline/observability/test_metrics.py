"""Metrics for scraping: an address that is taken is explained, and a free one is registered."""

import json
import socket
from pathlib import Path
from urllib.request import urlopen

import pytest

from scoreline.command_error import CommandError
from scoreline.observability import metrics
from scoreline.observability.metrics import serving
from scoreline.observability.telemetry_settings import TelemetrySettings

HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def no_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenTelemetry takes one provider a process, and other tests have it."""
    monkeypatch.setattr(metrics, "set_meter_provider", lambda _: None)


def test_a_port_in_use_is_an_error_with_the_remedy():
    """Each process needs a port of its own."""
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        settings = TelemetrySettings(metrics_port=port, metrics_host=HOST)
        with pytest.raises(CommandError) as error, serving("executor", "e-1", settings, {}):
            pass
    assert str(error.value).startswith(f"EVAL_METRICS_PORT={port}: can't listen on {HOST}: ")
    assert str(error.value).endswith("or 0 for any that is free, with EVAL_METRICS_DIR.")


def test_the_address_is_registered_while_metrics_are_served(tmp_path: Path):
    """Any free port, which the file of the process names."""
    settings = TelemetrySettings(metrics_port=0, metrics_host=HOST, metrics_dir=tmp_path)
    with serving("executor", "e-1", settings, {}):
        [path] = tmp_path.glob("*.json")
        [address] = json.loads(path.read_text())[0]["targets"]
        with urlopen(f"http://{address}/metrics") as reply:
            assert reply.status == 200
    assert list(tmp_path.glob("*.json")) == []


def test_without_a_folder_no_address_is_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Prometheus is configured with the port then."""
    monkeypatch.chdir(tmp_path)
    with serving("executor", "e-1", TelemetrySettings(metrics_port=0, metrics_host=HOST), {}):
        assert list(tmp_path.iterdir()) == []
