"""Withdrawal of published and unclaimed attempts from executors, so that a provider batch may answer them.

The canceller acts like an executor that stops right after it consumed a task: it claims the attempt and
hands it back, without charge. The claim is a compare-and-set in the log: an attempt that an executor has
claimed stays with it, and an attempt that is handed back here can't be claimed. The coordinator opens the
next attempt, and does not publish it to executors.

An attempt opened before Redis restarted can be neither claimed nor handed back; the coordinator opens the
next one in any case, and does not publish that one either.

A crash at any point is safe. An executor claims a task that was consumed and not handed back, once it is
stalled; the log rejects a claim of an attempt that was handed back and whose task was not acknowledged.
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
from projections.ledger.batch import Batch
from taskqueue.queue_layout import QueueLayout, queue_name, target_number
from taskqueue.tasks import Delivery, TaskQueue

CHUNK = 500
"""Tasks of a queue consumed at a time."""
RUNTIME = "withdrawal"
AT_ONCE = timedelta(0)


class TaskCanceller:
    """Withdraws tasks from executors, attempt by attempt."""

    def __init__(
        self, log: LogWriter, queue: TaskQueue, *, source: str, now: Callable[[], datetime]
    ) -> None:
        self._log = log
        self._queue = queue
        self._source = source
        self._now = now

    async def withdraw(self, batch: Batch) -> int:
        """Withdraw all queued tasks that a provider batch could answer; returns how many."""
        wanted = dict.fromkeys(cancellable_queues(batch.batch_id, spec_of(batch)), CHUNK)
        name, withdrawn = f"{self._source}-{token_hex(8)}", 0
        while taken := await self._queue.consume(name, wanted, block=AT_ONCE):
            withdrawn += await self._hand_back(name, taken)
        return withdrawn

    async def _hand_back(self, name: str, taken: Sequence[Delivery]) -> int:
        # Read after the tasks were consumed: none of them was opened in a later epoch.
        epochs = await self._log.epochs()
        calls = [
            self._withdrawal(name, each, epochs[shard_of(each.task.evaluation_id, self._log.shards)])
            for each in taken
        ]
        replies = await self._log.append(calls)
        # Acknowledged last: an attempt whose task is gone is enqueued again only once the queue is drained.
        await self._queue.ack(name, taken)
        return sum(_is_free(reply) for reply in replies)

    def _withdrawal(self, name: str, delivery: Delivery, epoch: str) -> Append:
        now = self._now()
        facts: tuple[p.AnyPayload, ...] = (
            p.Provisioning(executor=name, nonce=delivery.id, runtime=RUNTIME),
            p.Retrying(p.ErrorDetail(kind=MOVED, message="moved to a provider batch"), now),
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
    """Whether an attempt is handed back, or of an old epoch; a claimed one is a conflict."""
    return all(answer.acknowledged or answer is AppendResult.EPOCH for answer in reply.results)


def cancellable_queues(batch_id: str, spec: BatchSpec) -> list[str]:
    """Return the queues that hold only attempts that a provider batch could answer."""
    targets = (
        (partition, target_number(partition)) for partition in QueueLayout(batch_id, spec).partitions
    )
    return [
        queue_name(batch_id, partition)
        for partition, target in targets
        if target is not None and has_batches(spec.targets[target])
    ]
