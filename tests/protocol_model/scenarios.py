"""Which faults may happen, how often, and who takes part: the worlds that are searched."""

from dataclasses import dataclass
from typing import Any

from tests.protocol_model.faults import Budget, Fault

F = Fault


@dataclass(frozen=True, slots=True)
class Scenario:
    """A beginning, a cast, and a budget of faults."""

    budget: Budget = ()
    beginning: str = "published"
    """published, unpublished, provider batch, failed or completed."""
    storage_workers: int = 0
    """0 is one worker whose reading and committing nothing can come between."""
    coordinators: int = 1
    one_process: bool = False
    """The two executors are slots of one process: they share its name and heartbeat."""
    expiry: bool = False
    time_out: bool = False
    """An owner that lives and has let its attempt go is replaced when its time is out."""

    @property
    def name(self) -> str:
        """Return what is unusual about it."""
        faults = [f"{self.budget.count(fault)} {fault}" for fault in dict.fromkeys(self.budget)]
        notes = {
            self.beginning: self.beginning != "published",
            "one process": self.one_process,
            "expiry": self.expiry,
            "time-out": self.time_out,
            f"{self.storage_workers} storage": self.storage_workers > 0,
            f"{self.coordinators} coordinators": self.coordinators > 1,
        }
        return ", ".join([*(note for note, holds in notes.items() if holds), *faults]) or "no fault"


def _scenario(*budget: Fault, **cast: Any) -> Scenario:
    return Scenario(tuple(sorted(budget)), **cast)


CRASHES = [
    _scenario(),
    _scenario(F.COORDINATOR_CRASH, F.COORDINATOR_CRASH, beginning="unpublished"),
    _scenario(F.EXECUTOR_CRASH),
    _scenario(F.EXECUTOR_CRASH, F.EXECUTOR_CRASH, F.COORDINATOR_CRASH),
    _scenario(F.EXECUTOR_CRASH, F.REORDER),
    _scenario(F.EXECUTOR_CRASH, F.REORDER, F.REORDER),
]
ZOMBIES = [
    _scenario(F.SUSPICION),
    _scenario(F.SUSPICION, F.REORDER, F.DUPLICATE_TASK),
    _scenario(F.SUSPICION, F.EXECUTOR_CRASH),
    _scenario(F.SUSPICION, F.SUSPICION, F.COORDINATOR_CRASH),
]
DELIVERIES = [
    _scenario(F.DUPLICATE_TASK, F.DUPLICATE_TASK),
    _scenario(F.DUPLICATE_TASK, F.EXECUTOR_CRASH, F.LOST_REPLY),
    _scenario(F.DUPLICATE_TASK, F.LOST_REPLY, one_process=True),
    _scenario(F.DUPLICATE_TASK, F.LOST_REQUEST, one_process=True),
    _scenario(F.DUPLICATE_TASK, F.EXECUTOR_CRASH, F.LOST_REQUEST),
]
ERRORS = [
    _scenario(F.TARGET_ERROR, F.EXECUTOR_CRASH, F.COORDINATOR_CRASH),
    _scenario(F.GRADER_ERROR, F.SUSPICION),
]
STORAGE = [
    _scenario(F.STORAGE_CRASH, F.STORAGE_CRASH, F.REORDER, F.REORDER, storage_workers=2),
    _scenario(F.EXECUTOR_CRASH, F.REORDER, F.SUSPICION, storage_workers=2),
    _scenario(F.CANCEL, F.TARGET_ERROR, storage_workers=2),
]
PEOPLE = [
    _scenario(F.CANCEL, F.COORDINATOR_CRASH),
    _scenario(F.CANCEL, F.EXECUTOR_CRASH, F.REORDER),
    _scenario(F.DEADLINE, F.OPERATOR_RETRY, F.DUPLICATE_TASK),
    _scenario(F.CANCEL, F.OPERATOR_RETRY, F.TARGET_FAILURE, F.COORDINATOR_CRASH),
]
ENDED = [
    _scenario(F.OPERATOR_RETRY, F.DUPLICATE_TASK, beginning="failed", expiry=True),
    _scenario(
        F.OPERATOR_RETRY,
        F.DUPLICATE_TASK,
        F.COORDINATOR_CRASH,
        beginning="failed",
        expiry=True,
        storage_workers=2,
    ),
    _scenario(F.DUPLICATE_TASK, F.DUPLICATE_TASK, beginning="completed", expiry=True),
]
PROVIDER_BATCHES = [
    _scenario(F.COORDINATOR_CRASH, F.DUPLICATE_TASK, beginning="provider batch"),
    _scenario(F.CANCEL, F.EXECUTOR_CRASH, beginning="provider batch"),
    _scenario(F.REDIS_LOST, F.COORDINATOR_CRASH, beginning="provider batch"),
]
LOSSES = [
    _scenario(F.REDIS_LOST),
    _scenario(F.REDIS_LOST, storage_workers=2),
    _scenario(F.REDIS_LOST, F.EXECUTOR_CRASH),
    _scenario(F.REDIS_LOST, F.EXECUTOR_CRASH, storage_workers=2),
    _scenario(F.REDIS_LOST, F.SUSPICION),
    _scenario(F.REDIS_LOST, F.SUSPICION, storage_workers=2),
    _scenario(F.REDIS_LOST, F.CANCEL, F.COORDINATOR_CRASH),
    _scenario(F.REDIS_LOST, F.TARGET_ERROR),
    _scenario(F.REDIS_LOST, F.TARGET_ERROR, F.COORDINATOR_CRASH),
    _scenario(F.REDIS_LOST, F.COORDINATOR_CRASH, storage_workers=2),
    _scenario(F.REDIS_LOST, F.REORDER, F.DUPLICATE_TASK),
    _scenario(F.REDIS_LOST, F.LOST_REPLY, storage_workers=1),
    _scenario(F.REDIS_LOST, F.DEADLINE, F.OPERATOR_RETRY),
]
SHORT_GRACE = [
    _scenario(F.REDIS_LOST, F.GRACE_TOO_SHORT),
    _scenario(F.REDIS_LOST, F.GRACE_TOO_SHORT, storage_workers=2),
]
RESTARTS = [
    _scenario(F.REDIS_RESTARTED),
    _scenario(F.REDIS_RESTARTED, F.REDIS_RESTARTED),
    _scenario(F.REDIS_RESTARTED, F.SUSPICION),
    _scenario(F.REDIS_RESTARTED, F.EXECUTOR_CRASH),
    _scenario(F.REDIS_RESTARTED, F.TARGET_ERROR, F.COORDINATOR_CRASH),
    _scenario(F.REDIS_RESTARTED, F.CANCEL, storage_workers=1),
    _scenario(F.REDIS_RESTARTED, F.LOST_REPLY),
    _scenario(F.REDIS_RESTARTED, F.LOST_REPLY, time_out=True),
]
TWO_COORDINATORS = [
    _scenario(F.EXECUTOR_CRASH, coordinators=2),
    _scenario(F.CANCEL, F.SUSPICION, coordinators=2),
    _scenario(F.REDIS_LOST, coordinators=2),
    _scenario(F.REDIS_LOST, F.CANCEL, coordinators=2),
    _scenario(F.OPERATOR_RETRY, F.DUPLICATE_TASK, beginning="failed", expiry=True, coordinators=2),
    _scenario(F.REDIS_LOST, F.TARGET_ERROR, coordinators=2),
    _scenario(beginning="unpublished", expiry=True, coordinators=2),
]

SCENARIOS: tuple[Scenario, ...] = (
    *CRASHES,
    *ZOMBIES,
    *DELIVERIES,
    *ERRORS,
    *STORAGE,
    *PEOPLE,
    *ENDED,
    *PROVIDER_BATCHES,
    *LOSSES,
    *SHORT_GRACE,
    *RESTARTS,
    *TWO_COORDINATORS,
)
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
