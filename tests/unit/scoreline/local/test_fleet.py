"""A fleet on this machine: which processes are started, in which order, with which flags."""

from collections.abc import Sequence
from typing import cast

from scoreline.local.fleet import Fleet, start
from scoreline.local.processes import ProcessManager


class Recorder:
    """Records what a process manager would start."""

    def __init__(self) -> None:
        self.kept: dict[str, list[str]] = {}
        self.services: list[str] = []

    def keep(self, name: str, argv: Sequence[str], *, serves: bool = False) -> None:
        self.kept[name] = list(argv)
        self.services += [name] * serves


def started(fleet: Fleet) -> Recorder:
    """Start a fleet without processes."""
    recorder = Recorder()
    start(fleet, cast("ProcessManager", recorder))
    return recorder


def test_services_are_marked_so_that_executors_stop_before_them():
    """What executors finish at the very end is still stored."""
    found = started(Fleet("f", executors=2, storage_workers=2))
    assert list(found.kept) == [
        "storage worker 0",
        "storage worker 1",
        "coordinator",
        "executor 0",
        "executor 1",
    ]
    assert found.services == ["storage worker 0", "storage worker 1", "coordinator"]


def test_a_local_run_is_served_by_its_own_coordinator_and_executors():
    """A fleet without a run id serves batches of every run but local ones."""
    own, shared = (started(Fleet("f", run_id=run_id)).kept for run_id in ("run-1", ""))
    for name in ("coordinator", "executor 0"):
        assert own[name][own[name].index("--run") + 1] == "run-1"
        assert "--run" not in shared[name]


def test_executors_declare_labels_and_project():
    """Each label is a flag of its own; without a project there is no flag for it."""
    [argv] = [
        argv
        for name, argv in started(
            Fleet("f", executors=1, labels=("gpu", "region=eu"), project="search")
        ).kept.items()
        if name == "executor 0"
    ]
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "--label"] == ["gpu", "region=eu"]
    assert argv[-2:] == ["--project", "search"]
    assert "--project" not in started(Fleet("f")).kept["executor 0"]


def test_every_process_ends_with_its_parent():
    """Their standard input closes when the command that started them has died."""
    kept = started(Fleet("f")).kept
    assert [name for name, argv in kept.items() if "--follow-stdin" not in argv] == []
