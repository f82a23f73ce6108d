"""Addresses in the folder of Prometheus: who removes them, and when."""

import json
import os
import socket
import time
from pathlib import Path

import pytest

from scoreline.observability.addresses import registered
from scoreline.observability.thresholds import Thresholds

HERE = socket.gethostname()
DEAD = 2**22 + 17  # above the highest pid of a kernel
WINDOW = Thresholds().memory_window.total_seconds()


def left_behind(folder: Path, job: str, name: str, *, port: int, pid: int = DEAD, host: str = HERE) -> Path:
    """Leave the file that a process wrote, as a kill does."""
    labels = {"job": job, "__meta_scoreline_name": name}
    path = folder / f"{job}-{host}-{pid}.json"
    path.write_text(json.dumps([{"targets": [f"127.0.0.1:{port}"], "labels": labels}]))
    return path


def start(folder: Path, job: str, name: str, *, port: int = 1) -> None:
    """Let a process start and stop."""
    with registered(folder, job, name=name, host="127.0.0.1", port=port):
        pass


def test_a_process_writes_its_address_and_removes_it(tmp_path):
    """The file is in Prometheus's format, and the name is a label that no series gets."""
    with registered(tmp_path / "new", "executor", name="worker-1", host="127.0.0.1", port=4_711) as path:
        assert json.loads(path.read_text()) == [
            {
                "targets": ["127.0.0.1:4711"],
                "labels": {"job": "executor", "__meta_scoreline_name": "worker-1"},
            }
        ]
        assert [each.name for each in path.parent.iterdir()] == [f"executor-{HERE}-{os.getpid()}.json"]
    assert list((tmp_path / "new").iterdir()) == []


def test_a_wildcard_address_is_written_as_the_host_name(tmp_path):
    """Prometheus cannot scrape 0.0.0.0."""
    with registered(tmp_path, "executor", name="w", host="0.0.0.0", port=1) as path:
        assert json.loads(path.read_text())[0]["targets"] == [f"{HERE}:1"]
    with registered(tmp_path, "executor", name="w", host="::1", port=1) as path:
        assert json.loads(path.read_text())[0]["targets"] == ["[::1]:1"]


@pytest.mark.parametrize(("job", "name"), [("coordinator", "worker-1"), ("executor", "worker-2")])
def test_the_start_of_another_process_keeps_the_address_of_a_crashed_one(tmp_path, job, name):
    """Without its target Prometheus takes the executor for one that shut down: no WorkerDown."""
    crashed = left_behind(tmp_path, "executor", "worker-1", port=7)
    start(tmp_path, job, name)
    start(tmp_path, job, name)
    assert crashed.exists()


@pytest.mark.parametrize(("name", "port"), [("worker-1", 8), ("worker-2", 7)])
def test_a_restart_replaces_the_address_of_the_crashed_process(tmp_path, name, port):
    """By its name, or by its address: else its next shutdown would be reported as a crash."""
    crashed = left_behind(tmp_path, "executor", "worker-1", port=7)
    start(tmp_path, "executor", name, port=port)
    assert not crashed.exists()


def test_the_address_of_a_crashed_process_is_kept_as_long_as_its_alert_can_fire(tmp_path):
    """The time counts from when a process found it dead: its own file is as old as its start."""
    crashed = left_behind(tmp_path, "executor", "worker-1", port=7)
    age(crashed, 100 * WINDOW)
    start(tmp_path, "coordinator", "c")
    (mark,) = tmp_path.glob("*.dead")
    age(mark, WINDOW - 60)
    start(tmp_path, "coordinator", "c")
    assert crashed.exists()
    age(mark, WINDOW + 60)
    start(tmp_path, "coordinator", "c")
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_gets_the_pid_of_a_crashed_one_is_not_taken_for_dead(tmp_path):
    """It replaces the file, and the mark with it."""
    own = left_behind(tmp_path, "executor", "worker-1", port=7, pid=os.getpid())
    own.with_suffix(".dead").touch()
    with registered(tmp_path, "executor", name="worker-2", host="127.0.0.1", port=1):
        assert list(tmp_path.iterdir()) == [own]


def test_addresses_of_other_hosts_and_of_live_processes_are_kept(tmp_path):
    """On another host the same pid may be alive, and two executors may have one name by mistake."""
    elsewhere = left_behind(tmp_path, "executor", "worker-1", port=7, host="other")
    alive = left_behind(tmp_path, "executor", "worker-1", port=8, pid=os.getppid())
    start(tmp_path, "executor", "worker-1")
    assert set(tmp_path.iterdir()) == {elsewhere, alive}


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"targets": 1}]', "[1]"])
def test_a_file_that_is_no_address_stops_no_process(tmp_path, text):
    """It is removed like any other that a dead process left."""
    path = tmp_path / f"executor-{HERE}-{DEAD}.json"
    path.write_text(text)
    start(tmp_path, "executor", "worker-1")
    assert path.exists()
    age(path.with_suffix(".dead"), WINDOW + 60)
    start(tmp_path, "executor", "worker-1")
    assert list(tmp_path.iterdir()) == []


def age(path: Path, seconds: float) -> None:
    """Make a file as old as that."""
    then = time.time() - seconds
    os.utime(path, (then, then))
