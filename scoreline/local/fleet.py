"""A fleet on this machine: coordinator, storage workers and executors, each kept alive."""

from dataclasses import dataclass

from domain.ids import FLEET
from scoreline.local.processes import ProcessManager, service_argv
from scoreline.local.storage_workers import WorkerPlan, worker_argv


@dataclass(frozen=True, slots=True)
class Fleet:
    """What to start."""

    name: str
    executors: int = 4
    concurrency: int = 16
    storage_workers: int = 1
    project: str | None = None
    run_id: str = FLEET
    """The local run it belongs to: it serves the batches of that run, and nothing else."""
    labels: tuple[str, ...] = ()
    """What its executors declare, besides EVAL_WORKER_LABELS."""


def start(fleet: Fleet, manager: ProcessManager) -> None:
    """Start all of it; whatever ends is started again until the manager is left.

    Executors are stopped first, so that what they finish at the very end is still stored.
    """
    for number in range(fleet.storage_workers):
        argv = worker_argv(WorkerPlan(fleet.name), number)
        manager.keep(f"storage worker {number}", argv, serves=True)
    argv = _argv("coordinator", "start", "--name", f"{fleet.name}-coordinator", *_run(fleet))
    manager.keep("coordinator", argv, serves=True)
    for number in range(fleet.executors):
        manager.keep(f"executor {number}", _executor_argv(fleet, number))


def _executor_argv(fleet: Fleet, number: int) -> list[str]:
    argv = _argv("worker", "start", "--id", f"{fleet.name}-{number}")
    argv += ["--concurrency", str(fleet.concurrency), *_run(fleet)]
    argv += [word for label in fleet.labels for word in ("--label", label)]
    return argv + (["--project", fleet.project] if fleet.project else [])


def _run(fleet: Fleet) -> list[str]:
    return ["--run", fleet.run_id] if fleet.run_id else []


def _argv(*words: str) -> list[str]:
    return service_argv(*words, "--follow-stdin")
