"""The keys in Redis; they are public, and all keys of a batch share its cluster slot."""

from taskqueue.queue_layout import split_queue

GROUP = "eval-workers"
BATCHES = "eval:batches"
EXECUTORS = "eval:executors"


def tasks_key(queue: str) -> str:
    """Return the key of a queue's stream of tasks."""
    batch_id, partition = split_queue(queue)
    return f"eval:tasks:{{{batch_id}}}:{partition}" if partition else f"eval:tasks:{{{batch_id}}}"


def legacy_dead_letters_key(batch_id: str) -> str:
    """Return the key of a stream that earlier versions wrote and never expired while its batch ran."""
    return f"eval:dlq:{{{batch_id}}}"


def spec_key(batch_id: str) -> str:
    """Return the key of a batch's spec."""
    return f"eval:batch:{{{batch_id}}}"


def contexts_key(batch_id: str) -> str:
    """Return the key of the hash of contexts of serial groups."""
    return f"eval:context:{{{batch_id}}}"


def lanes_key(batch_id: str) -> str:
    """Return the key of the hash of lanes by partition."""
    return f"eval:lanes:{{{batch_id}}}"


def executor_key(instance_id: str) -> str:
    """Return the key of an executor instance's heartbeat; it expires."""
    return f"eval:executor:{instance_id}"
