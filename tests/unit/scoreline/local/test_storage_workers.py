"""The children of a fleet of storage workers."""

from pathlib import Path

from scoreline.local.storage_workers import worker_environ
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings

SERVERS = Servers("redis://localhost", "postgresql://localhost/x")


def test_children_of_a_fleet_have_ports_of_their_own():
    """A single process has the configured port."""
    settings = Settings(metrics_port=9_464, metrics_dir=Path("m"), trace_dir=Path("t"), trace_ratio=0.5)
    environ = worker_environ(settings, SERVERS)
    ports = {
        name: value for name, value in environ.items() if name.startswith(("EVAL_METRICS", "EVAL_TRACE"))
    }
    assert ports == {
        "EVAL_METRICS_PORT": "0",
        "EVAL_METRICS_HOST": "127.0.0.1",
        "EVAL_METRICS_DIR": "m",
        "EVAL_TRACE_DIR": "t",
        "EVAL_TRACE_RATIO": "0.5",
    }
    assert worker_environ(settings, SERVERS, alone=True)["EVAL_METRICS_PORT"] == "9464"
    assert "EVAL_METRICS_PORT" not in worker_environ(Settings(), SERVERS)
