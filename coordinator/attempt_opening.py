"""Opening attempts: in Postgres first, and only then is anybody told. Every step may be repeated."""

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
from projections.ledger.contract import Batch, Decide, Ledger, OpenedAttempt, UnpublishedOpening
from taskqueue.batch_registry import BatchRegistry
from taskqueue.queue_layout import QueueLayout


class AttemptOpener:
    """Opens attempts, and sees to it that whoever must know hears of them."""

    def __init__(  # noqa: PLR0913 - two ports, and those who know
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
        """Be the one who opens attempts of an evaluation, now."""
        return AttemptFactory(self._settings.name, self._now(), self._epochs.of(evaluation_id))

    async def open(self, batch: Batch, evaluation_ids: Sequence[str], decide: Decide) -> int:
        """Open attempts in Postgres, then tell executors; returns how many."""
        if not evaluation_ids:
            return 0
        opened = await self._ledger.open_attempts(evaluation_ids, decide)
        telemetry.count_opened(opened)
        # One without an epoch waits for its turn in a group, or for a provider.
        queued = [one for one in opened if is_to_be_run(one.events) and one.epoch]
        await self._leave_contexts(batch, queued)
        await self._publisher.publish(layout_of(batch), ((one.events, one.epoch) for one in queued))
        # An ending concerns nobody who had not heard of the evaluation.
        endings = [one for one in opened if not is_to_be_run(one.events) and one.was_published]
        await self._publish_endings([UnpublishedOpening(one.evaluation_id, one.events) for one in endings])
        left = [one for one in opened if is_to_be_run(one.events) and one.was_published and not one.epoch]
        await self._publisher.expire_streams([one.events[0][0] for one in left])
        return len(opened)

    async def end_all(self, batch: Batch, ending: Ending) -> None:
        """End all that has not ended, page by page."""
        await self._epochs.refresh()
        after = ""
        while ids := await self._ledger.open_ids(
            batch.batch_id, after=after, limit=self._settings.page_size
        ):
            await self.open(batch, ids, decisions.end(self.factory, ending))
            after = ids[-1]

    async def publish_endings(self) -> None:
        """Tell of endings that somebody committed, and did not come to tell of."""
        while endings := await self._ledger.unpublished_endings(limit=self._settings.page_size):
            await self._publish_endings(endings)

    async def _publish_endings(self, endings: Sequence[UnpublishedOpening]) -> None:
        """Fence off whoever still works on what has ended in Postgres, whatever the epoch."""
        # What an operator has reopened since is no ending any more.
        ended = [one.events for one in endings if not is_to_be_run(one.events)]
        await self._publisher.publish(None, ((events, "") for events in ended))
        await self._ledger.mark_published([one.evaluation_id for one in endings])

    async def _leave_contexts(self, batch: Batch, opened: Sequence[OpenedAttempt]) -> None:
        """Leave again what earlier evaluations came to: Redis may have lost it since."""
        in_group = [one.evaluation_id for one in opened if _is_in_group(one)]
        if in_group:
            left = await contexts(self._ledger, spec_of(batch), await self._ledger.links(in_group))
            packed = {key: context.packed() for key, context in left.items()}
            await self._batch_registry.put_contexts(batch.batch_id, packed)


def spec_of(batch: Batch) -> BatchSpec:
    """Read a batch's spec, once for many times."""
    return _unpacked(batch.spec)


_unpacked = lru_cache(maxsize=64)(unpack)


@lru_cache(maxsize=64)
def _lines(batch_id: str, spec: bytes) -> QueueLayout:
    return QueueLayout(batch_id, _unpacked(spec))


def layout_of(batch: Batch) -> QueueLayout:
    """Say where the tasks of a batch wait."""
    return _lines(batch.batch_id, batch.spec)


def _is_in_group(opened: OpenedAttempt) -> bool:
    opening = opened.events[0][0].data
    return isinstance(opening, p.Queued) and opening.in_group
