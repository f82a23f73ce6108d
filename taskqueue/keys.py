"""The names of keys in Redis; they are public, and all keys of a batch share its cluster slot."""

GROUP = "eval-workers"
BOARD = "eval:batches"
EXECUTORS = "eval:executors"


def tasks_key(batch_id: str) -> str:
    """Name the stream of a batch's tasks."""
    return f"eval:tasks:{{{batch_id}}}"


def delayed_key(batch_id: str) -> str:
    """Name the sorted set of a batch's tasks that are not due yet."""
    return f"eval:delayed:{{{batch_id}}}"


def dead_letters_key(batch_id: str) -> str:
    """Name the stream of a batch's tasks that were given up."""
    return f"eval:dlq:{{{batch_id}}}"


def spec_key(batch_id: str) -> str:
    """Name the string that holds a batch's spec."""
    return f"eval:batch:{{{batch_id}}}"


def contexts_key(batch_id: str) -> str:
    """Name the hash of what earlier evaluations left for later ones."""
    return f"eval:context:{{{batch_id}}}"


def executor_key(incarnation: str) -> str:
    """Name the string that lives while an executor does."""
    return f"eval:executor:{incarnation}"
