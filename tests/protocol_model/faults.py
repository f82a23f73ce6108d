"""What may go wrong, and what people may ask: a scenario grants so many of each."""

from enum import StrEnum


class Fault(StrEnum):
    """Something that no path may rely on; a search takes each as often as its budget allows."""

    __hash__ = str.__hash__

    EXECUTOR_CRASH = "executor crash"
    COORDINATOR_CRASH = "coordinator crash"
    STORAGE_CRASH = "storage crash"
    SUSPICION = "suspicion"
    """A live owner is taken for dead."""
    REORDER = "reorder"
    DUPLICATE_TASK = "duplicate task"
    LOST_REPLY = "lost reply"
    LOST_REQUEST = "lost request"
    TARGET_ERROR = "target error"
    TARGET_FAILURE = "target failure"
    GRADER_ERROR = "grader error"
    CANCEL = "cancel"
    DEADLINE = "deadline"
    OPERATOR_RETRY = "operator retry"
    REDIS_LOST = "Redis lost"
    REDIS_RESTARTED = "Redis restarted"
    GRACE_TOO_SHORT = "grace too short"


FATE = frozenset(
    {Fault.CANCEL, Fault.DEADLINE, Fault.DUPLICATE_TASK, Fault.REDIS_LOST, Fault.REDIS_RESTARTED}
)
"""What happens to the world rather than to one process."""

Budget = tuple[Fault, ...]
"""The faults that may still happen, sorted."""


def spend(budget: Budget, fault: Fault) -> Budget:
    """Take one fault out of the budget."""
    at = budget.index(fault)
    return budget[:at] + budget[at + 1 :]
