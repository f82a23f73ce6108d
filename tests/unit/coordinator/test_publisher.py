"""Publication of attempts: the log first, and only acknowledged openings get a task."""

from collections.abc import Sequence
from datetime import timedelta

from coordinator.publisher import CHUNK, Publisher
from domain.batch_spec import BatchSpec, TargetSpec
from eventlog.codec import encode
from eventlog.events import Event
from eventlog.log import Append, EncodedEvent
from eventlog.memory import MemoryEventLog
from taskqueue.memory import MemoryTaskQueue
from taskqueue.queue_layout import QueueLayout
from taskqueue.tasks import Task
from tests.builders import BATCH, EVALUATION, history

NOW = timedelta(0)
SPEC = BatchSpec("nightly", (TargetSpec("simulated", "simulated"),))


class Harness:
    """A log, a queue, and a publisher."""

    def __init__(self) -> None:
        self.log = MemoryEventLog(lambda: 1_000)
        self.queue = MemoryTaskQueue(lambda: 1.0)
        self.publisher = Publisher(self.log, self.queue)

    async def publish(self, *openings: Sequence[Event], epoch: str | None = None) -> int:
        """Publish openings, by default in the current epoch."""
        return await self.publisher.publish(
            QueueLayout(BATCH, SPEC),
            [
                (
                    [(event, encode(event)) for event in events],
                    await self.log.epoch(events[0].evaluation_id) if epoch is None else epoch,
                )
                for events in openings
            ],
        )

    async def tasks(self) -> list[Task]:
        """Consume all tasks."""
        return [each.task for each in await self.queue.consume("executor", {BATCH: 10_000}, block=NOW)]

    async def logged(self, evaluation_id: str = EVALUATION) -> int:
        """Count the events of an evaluation."""
        return len((await self.log.read([evaluation_id], limit=100))[0])


async def test_an_opening_is_appended_and_its_task_enqueued() -> None:
    """The task names the attempt of the opening."""
    harness = Harness()
    assert await harness.publish(history("queued:lost", attempt=3)) == 1
    assert await harness.logged() == 1
    assert await harness.tasks() == [Task(EVALUATION, 3)]


async def test_publishing_is_idempotent() -> None:
    """The log has the opening once; a second task is harmless."""
    harness = Harness()
    for _ in range(2):
        assert await harness.publish(history("queued")) == 1
    assert await harness.logged() == 1
    assert await harness.tasks() == [Task(EVALUATION, 1)] * 2


async def test_an_opening_of_an_old_epoch_is_not_published() -> None:
    """After data loss in Redis it is neither appended nor enqueued."""
    harness = Harness()
    assert await harness.publish(history("queued"), epoch="long ago") == 0
    assert (await harness.logged(), await harness.tasks()) == (0, [])


async def test_a_fenced_opening_is_not_published() -> None:
    """A higher attempt was opened before."""
    harness = Harness()
    await harness.publish(history("queued:lost", attempt=2))
    assert await harness.publish(history("queued")) == 0
    assert await harness.tasks() == [Task(EVALUATION, 2)]


async def test_an_ending_has_no_task() -> None:
    """A cancelled, expired or failed evaluation is not enqueued."""
    harness = Harness()
    endings = [
        history("cancelled", attempt=2, evaluation_id="a"),
        history("timed_out", attempt=2, evaluation_id="b"),
        history("queued:lost failed", attempt=2, evaluation_id="c"),
    ]
    assert await harness.publish(*endings, epoch="") == 0
    assert [await harness.logged(key) for key in "abc"] == [1, 1, 2]
    assert await harness.tasks() == []


async def test_an_ending_wakes_a_storage_worker_and_an_opening_does_not() -> None:
    """No sweep selects ended evaluations; an opening holds nothing that Postgres lacks."""
    harness = Harness()
    await harness.publish(history("queued", evaluation_id="open"))
    await harness.publish(history("cancelled", attempt=2, evaluation_id="ended"))
    assert [key for shard in harness.log.wake_ups for key in shard] == ["ended"]


async def test_an_ending_fences_the_owner() -> None:
    """Later appends of the owner are rejected."""
    harness = Harness()
    await harness.publish(history("queued"))
    claim, running = (
        EncodedEvent(event, encode(event)) for event in history("provisioning running", first=1)
    )
    epoch = await harness.log.epoch(EVALUATION)
    await harness.log.append([Append(EVALUATION, [claim], epoch)])
    await harness.publish(history("cancelled", attempt=2), epoch="")
    [reply] = await harness.log.append([Append(EVALUATION, [running], epoch)])
    assert not reply.results[0].acknowledged


async def test_many_openings_are_published_in_several_round_trips() -> None:
    """Each opening is published exactly once."""
    harness = Harness()
    many = [history("queued", evaluation_id=f"evaluation-{n:04}") for n in range(2 * CHUNK + 1)]
    assert await harness.publish(*many) == len(many)
    assert [task.evaluation_id for task in await harness.tasks()] == [
        each[0].evaluation_id for each in many
    ]
