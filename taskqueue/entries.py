"""What the entries of the queue's streams say."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from taskqueue.tasks import DeadLetter, Task


def as_task(fields: Sequence[bytes]) -> Task | None:
    """Read a task's fields, names and values in turn; None if they are something else."""
    named = dict(zip(fields[::2], fields[1::2], strict=True))
    try:
        return Task(named[b"id"].decode(), int(named[b"attempt"]))
    except (KeyError, ValueError):
        return None


def as_dead_letter(message: bytes, fields: Mapping[bytes, bytes]) -> DeadLetter:
    """Read a dead letter; its time is the one its id is made of."""
    task = Task(fields[b"id"].decode(), int(fields[b"attempt"]))
    milliseconds = int(message.partition(b"-")[0])
    given_up_at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return DeadLetter(task, fields[b"reason"].decode(errors="replace"), given_up_at)
