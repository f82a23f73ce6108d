"""Opening of attempts: committed in Postgres first, then published. Every step is idempotent.

The number of the attempt is the fencing token: once a higher attempt is opened, the log rejects appends of
lower ones.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache

from coordinator import decisions, telemetry
from coordinator.attempts import AttemptFactory, Ending
from coordinator.epochs import EpochTracker
from coordinator.groups import contexts
from coordinator.publisher import Publisher, is_to_be_run
from coordinator.settings import CoordinatorSettings
from domain.batch_spec import BatchSpec, unpack
from eventlog import payloads as p
from projections.ledger.batch import Batch
from projections.ledger.contract import Decide, Ledger, OpenedAttempt, UnpublishedOpening
from taskqueue.batch_registry import BatchRegistry
from taskqueue.queue_layout import QueueLayout


class AttemptOpener:
    """Opens attempts in the ledger, and publishes their openings and endings."""

    def __init__(  # noqa: PLR0913 - two ports and two collaborators
        self,
        ledger: Ledger,
        batch_registry: BatchRegistry,
        publisher: Publisher,
        epochs: EpochTracker,
        *,
        settings: CoordinatorSettings,
        now: Callable[[], datetime],
    ) -> None:
        self._ledger = ledger
        self._batch_registry = batch_registry
        self._publisher = publisher
        self._epochs = epochs
        self._settings = settings
        self._now = now

    def factory(self, evaluation_id: str) -> AttemptFactory:
        """Return a factory of attempts with the current time and the epoch of the evaluation's shard."""
        return AttemptFactory(self._settings.name, self._now(), self._epochs.of(evaluation_id))

    async def open(self, batch: Batch, evaluation_ids: Sequence[str], decide: Decide) -> int:
        """Open attempts in Postgres, then publish them to executors; returns how many were opened."""
        if not evaluation_ids:
            return 0
        opened = await self._ledger.open_attempts(evaluation_ids, decide)
        telemetry.count_opened(opened)
        # An attempt without an epoch waits for its serial group or for a provider batch.
        queued = [one for one in opened if is_to_be_run(one.events) and one.epoch]
        await self._leave_contexts(batch, queued)
        await self._publisher.publish(layout_of(batch), ((one.events, one.epoch) for one in queued))
        # An evaluation that was never published has no owner to fence.
        endings = [one for one in opened if not is_to_be_run(one.events) and one.was_published]
        await self._publish_endings([UnpublishedOpening(one.evaluation_id, one.events) for one in endings])
        left = [one for one in opened if is_to_be_run(one.events) and one.was_published and not one.epoch]
        await self._publisher.expire_streams([one.events[0][0] for one in left])
        return len(opened)

    async def end_all(self, batch: Batch, ending: Ending) -> None:
        """End all evaluations of a batch that have not ended, page by page."""
        await self._epochs.refresh()
        after = ""
        while ids := await self._ledger.open_ids(
            batch.batch_id, after=after, limit=self._settings.page_size
        ):
            await self.open(batch, ids, decisions.end(self.factory, ending))
            after = ids[-1]

    async def publish_endings(self) -> None:
        """Publish endings that a coordinator committed and did not publish before it died."""
        while endings := await self._ledger.unpublished_endings(limit=self._settings.page_size):
            await self._publish_endings(endings)

    async def _publish_endings(self, endings: Sequence[UnpublishedOpening]) -> None:
        """Append endings in any epoch: they fence the owners of evaluations that have ended in Postgres."""
        # An evaluation that an operator has reopened since has no ending any more.
        ended = [one.events for one in endings if not is_to_be_run(one.events)]
        await self._publisher.publish(None, ((events, "") for events in ended))
        await self._ledger.mark_published([one.evaluation_id for one in endings])

    async def _leave_contexts(self, batch: Batch, opened: Sequence[OpenedAttempt]) -> None:
        """Store the contexts of serial groups again: Redis may have lost them since."""
        in_group = [one.evaluation_id for one in opened if _is_in_group(one)]
        if in_group:
            left = await contexts(self._ledger, spec_of(batch), await self._ledger.links(in_group))
            packed = {key: context.packed() for key, context in left.items()}
            await self._batch_registry.put_contexts(batch.batch_id, packed)


def spec_of(batch: Batch) -> BatchSpec:
    """Return a batch's spec, decoded once and cached."""
    return _unpacked(batch.spec)


_unpacked = lru_cache(maxsize=64)(unpack)


@lru_cache(maxsize=64)
def _layout(batch_id: str, spec: bytes) -> QueueLayout:
    return QueueLayout(batch_id, _unpacked(spec))


def layout_of(batch: Batch) -> QueueLayout:
    """Return the queue layout of a batch."""
    return _layout(batch.batch_id, batch.spec)


def _is_in_group(opened: OpenedAttempt) -> bool:
    opening = opened.events[0][0].data
    return isinstance(opening, p.Queued) and opening.in_group
