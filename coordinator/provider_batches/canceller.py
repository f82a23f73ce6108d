"""Taking back what executors were told of and have not begun, so that a provider batch may answer it.

Whoever withdraws does as an executor does that has to stop as soon as it has a task: it claims the attempt
and hands it back, at no charge. So the log decides whose an attempt is, as ever: what an executor has
claimed stays with it, and what is handed back here no executor can claim. The coordinator opens the next
attempt, and nobody is told of that one.

What was opened before Redis started again nobody can claim, nor hand back; the coordinator opens another
attempt of it in any case, and of that one nobody is told either.

It may die anywhere. A task that was taken and not handed back is taken over by an executor; one that was
handed back and not acknowledged is refused to whoever comes for it.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from secrets import token_hex

from coordinator.attempt_opening import spec_of
from coordinator.provider_batches.requests import has_batches
from domain.batch_spec import BatchSpec
from domain.retry_policy import MOVED
from eventlog import payloads as p
from eventlog.codec import encode, make_event
from eventlog.keys import shard_of
from eventlog.log import Append, AppendResponse, AppendResult, EncodedEvent, LogWriter, Mode
from projections.ledger.contract import Batch
from taskqueue.queue_layout import QueueLayout, queue_name, target_number
from taskqueue.tasks import Delivery, TaskQueue

CHUNK = 500
"""Tasks of a line taken at a time."""
RUNTIME = "withdrawal"
AT_ONCE = timedelta(0)


class TaskCanceller:
    """Takes tasks from executors, attempt by attempt."""

    def __init__(
        self, log: LogWriter, queue: TaskQueue, *, source: str, now: Callable[[], datetime]
    ) -> None:
        self._log = log
        self._queue = queue
        self._source = source
        self._now = now

    async def withdraw(self, batch: Batch) -> int:
        """Take back all that waits for executors and a provider batch could answer; returns how many."""
        wanted = dict.fromkeys(cancellable_queues(batch.batch_id, spec_of(batch)), CHUNK)
        name, withdrawn = f"{self._source}-{token_hex(8)}", 0
        while taken := await self._queue.consume(name, wanted, block=AT_ONCE):
            withdrawn += await self._hand_back(name, taken)
        return withdrawn

    async def _hand_back(self, name: str, taken: Sequence[Delivery]) -> int:
        # Asked for after the tasks were taken: none of them was opened in a later epoch.
        epochs = await self._log.epochs()
        calls = [
            self._withdrawal(name, each, epochs[shard_of(each.task.evaluation_id, self._log.shards)])
            for each in taken
        ]
        replies = await self._log.append(calls)
        # Only now: a task that is gone before waits until the whole queue is drained.
        await self._queue.ack(name, taken)
        return sum(_is_free(reply) for reply in replies)

    def _withdrawal(self, name: str, delivery: Delivery, epoch: str) -> Append:
        now = self._now()
        facts: tuple[p.AnyPayload, ...] = (
            p.Provisioning(executor=name, nonce=delivery.id, runtime=RUNTIME),
            p.Retrying(p.ErrorDetail(kind=MOVED, message="to be asked in a provider batch"), now),
        )
        events = [
            make_event(
                fact,
                evaluation_id=delivery.task.evaluation_id,
                batch_id=delivery.batch_id,
                attempt=delivery.task.attempt,
                sequence=sequence,
                occurred_at=now,
                source=name,
            )
            for sequence, fact in enumerate(facts, start=1)
        ]
        records = [EncodedEvent(event, encode(event)) for event in events]
        return Append(delivery.task.evaluation_id, records, epoch, Mode.WITHDRAWAL)


def _is_free(reply: AppendResponse) -> bool:
    """Whether an attempt is handed back, or of an epoch that is over; one that is claimed is a conflict."""
    return all(answer.acknowledged or answer is AppendResult.EPOCH for answer in reply.results)


def cancellable_queues(batch_id: str, spec: BatchSpec) -> list[str]:
    """Name the lines in which nothing waits but what a provider batch could answer."""
    targets = (
        (partition, target_number(partition)) for partition in QueueLayout(batch_id, spec).partitions
    )
    return [
        queue_name(batch_id, partition)
        for partition, target in targets
        if target is not None and has_batches(spec.targets[target])
    ]
