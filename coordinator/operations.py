"""What people ask of batches: pause, resume, cancel, retry. Each may be asked again, by anybody."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from coordinator.coordinator import Coordinator
from eventlog.lifecycle import SETTLED
from projections.ledger import Batch, Ledger

PAGE = 2_000
_WAYS_BACK = {
    "cancelled": ", which is final. Submit it again: scoreline batch run",
    "expired": ". To try what it left undone: scoreline batch retry {}",
}


class Refused(Exception):  # noqa: N818 - what the user is told
    """What was asked can't be done; the text says why, and what can."""


class UnknownBatch(Refused):
    """There is no such batch."""

    def __init__(self, batch_id: str) -> None:
        super().__init__(f"There is no batch {batch_id!r}.")
        self.batch_id = batch_id


@dataclass(frozen=True, slots=True)
class Operator:
    """Somebody who asks."""

    ledger: Ledger
    coordinator: Coordinator
    name: str = "operator"

    async def batch(self, batch_id: str) -> Batch:
        """Return a batch, or raise `UnknownBatch`."""
        found = await self.ledger.batch(batch_id)
        if found is None:
            raise UnknownBatch(batch_id)
        return found

    async def pause(self, batch_id: str, *, reason: str = "") -> None:
        """Let what is in hand come to its end, and start nothing new."""
        batch = await self.batch(batch_id)
        if batch.finished:
            raise Refused(f"{batch_id} is {batch.state}: there is nothing to pause.")
        if batch.state == "paused":
            raise Refused(f"{batch_id} is paused already. To go on: scoreline batch resume {batch_id}")
        if not await self.ledger.ask(batch_id, "paused", by=self.name, reason=reason):
            raise Refused(f"{batch_id} is {batch.state}: there is nothing to pause.")
        await self._put_up(batch_id)

    async def resume(self, batch_id: str) -> Batch:
        """Go on with a batch that was paused, or whose coordinator is gone."""
        batch = await self.batch(batch_id)
        if batch.state in {"cancelled", "expired"}:
            raise Refused(f"{batch_id} is {batch.state}{_WAYS_BACK[batch.state].format(batch_id)}")
        if batch.finished:
            raise Refused(
                f"{batch_id} is complete: there is nothing to resume. "
                f"To try what failed again: scoreline batch retry {batch_id}"
            )
        await self.ledger.ask(batch_id, "running", by=self.name)
        return await self._put_up(batch_id)

    async def cancel(self, batch_id: str, *, reason: str = "") -> None:
        """Call a batch off: abort what is in hand, end the rest."""
        batch = await self.batch(batch_id)
        if batch.finished:
            raise Refused(f"{batch_id} is {batch.state}: there is nothing to cancel.")
        await self.ledger.ask(batch_id, "cancelled", by=self.name, reason=reason)
        await self.coordinator.tend(await self._put_up(batch_id))
        await self.coordinator.tend(await self.batch(batch_id))

    async def retry(self, batch_id: str, *, only: Sequence[str] = ()) -> int:
        """Try dead letters again, all or a selection; returns how many."""
        batch = await self.batch(batch_id)
        if batch.state == "cancelled":
            raise Refused(f"{batch_id} is cancelled{_WAYS_BACK['cancelled']}")
        pages = self._dead_letters(batch_id, only)
        page = await anext(pages, None)
        if page is None:
            return 0
        if batch.finished or batch.state == "expired":
            await self.ledger.reopen(batch_id, by=self.name, reason="retry")
        batch = await self.batch(batch_id)
        reopened = await self.coordinator.reopen(batch, page)
        async for page in pages:
            reopened += await self.coordinator.reopen(batch, page)
        return reopened

    async def _dead_letters(self, batch_id: str, only: Sequence[str]) -> AsyncGenerator[list[str]]:
        if only:
            chosen = [one.row for one in await self.ledger.standings(only)]
            dead = [row for row in chosen if row.batch_id == batch_id and row.cursor.phase in SETTLED]
            for at in range(0, len(dead), PAGE):
                yield [row.evaluation_id for row in dead[at : at + PAGE]]
            return
        after = ""
        while page := await self.ledger.dead_ids(batch_id, after=after, limit=PAGE):
            yield page
            after = page[-1]

    async def _put_up(self, batch_id: str) -> Batch:
        """Let executors see at once what was asked."""
        batch = await self.batch(batch_id)
        await self.coordinator.put_up([batch])
        return batch
