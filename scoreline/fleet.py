"""A fleet on this machine: coordinator, storage workers and executors, each kept alive."""

import sys
from dataclasses import dataclass

from scoreline.processes import ProcessManager
from scoreline.workers import WorkerPlan, worker_argv


@dataclass(frozen=True, slots=True)
class Fleet:
    """What to start."""

    name: str
    executors: int = 4
    concurrency: int = 16
    storage_workers: int = 1
    project: str | None = None


def start(fleet: Fleet, manager: ProcessManager) -> None:
    """Start all of it; whatever ends is started again until the manager is left."""
    for number in range(fleet.storage_workers):
        manager.keep(f"storage worker {number}", worker_argv(WorkerPlan(fleet.name), number))
    manager.keep("coordinator", _argv("coordinator", "start", "--name", f"{fleet.name}-coordinator"))
    for number in range(fleet.executors):
        manager.keep(f"executor {number}", _executor_argv(fleet, number))


def _executor_argv(fleet: Fleet, number: int) -> list[str]:
    argv = _argv("worker", "start", "--id", f"{fleet.name}-{number}")
    argv += ["--concurrency", str(fleet.concurrency)]
    return argv + (["--project", fleet.project] if fleet.project else [])


def _argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "scoreline", *words, "--follow-stdin"]
