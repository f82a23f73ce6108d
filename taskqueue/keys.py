"""The names of keys in Redis; they are public, and all keys of a batch share its cluster slot."""

from taskqueue.queue_layout import split_queue

GROUP = "eval-workers"
BATCHES = "eval:batches"
EXECUTORS = "eval:executors"


def tasks_key(queue: str) -> str:
    """Name the stream of a line's tasks."""
    return _of_line("eval:tasks", queue)


def delayed_key(queue: str) -> str:
    """Name the sorted set of a line's tasks that are not due yet."""
    return _of_line("eval:delayed", queue)


def _of_line(what: str, queue: str) -> str:
    batch_id, partition = split_queue(queue)
    return f"{what}:{{{batch_id}}}:{partition}" if partition else f"{what}:{{{batch_id}}}"


def dead_letters_key(batch_id: str) -> str:
    """Name the stream of a batch's tasks that were given up."""
    return f"eval:dlq:{{{batch_id}}}"


def spec_key(batch_id: str) -> str:
    """Name the string that holds a batch's spec."""
    return f"eval:batch:{{{batch_id}}}"


def contexts_key(batch_id: str) -> str:
    """Name the hash of what earlier evaluations left for later ones."""
    return f"eval:context:{{{batch_id}}}"


def lanes_key(batch_id: str) -> str:
    """Name the hash of the lanes that a batch's lines have to ask."""
    return f"eval:lanes:{{{batch_id}}}"


def executor_key(instance_id: str) -> str:
    """Name the string that lives while an executor does."""
    return f"eval:executor:{instance_id}"
