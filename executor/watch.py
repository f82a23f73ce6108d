"""What the board says: which batches to take from, and which to stop at once."""

from collections.abc import Mapping

from executor.hands import Ending, Hands
from executor.kits import Kits
from taskqueue.board import BatchBoard, BatchState, Listing
from taskqueue.tasks import TaskQueue


class Watch:
    """The board as it was at the last look."""

    def __init__(
        self, board: BatchBoard, tasks: TaskQueue, *, hands: Hands, kits: Kits, project: str | None
    ) -> None:
        self._board = board
        self._tasks = tasks
        self._hands = hands
        self._kits = kits
        self._project = project
        self.priorities: Mapping[str, int] = {}
        """The batches to take from, with their weights."""

    async def look(self) -> None:
        """Look at the board, stop what is to be stopped, and close what nobody needs any more.

        A batch that is gone is not stopped: the board may have been lost, and the work on it still counts.
        """
        listings = await self._board.listings()
        self.priorities = {each.batch_id: each.priority for each in listings if self._is_for_us(each)}
        stopped = {each.batch_id for each in listings if each.state is BatchState.STOPPED}
        for hand in self._hands:
            if hand.delivery.batch_id in stopped:
                hand.interrupt(Ending.STOPPED)
        await self._kits.keep_only({each.batch_id for each in listings} | self._hands.batches)

    def _is_for_us(self, listing: Listing) -> bool:
        return listing.state is BatchState.RUNNING and self._project in {None, listing.project}

    async def nothing_left(self) -> bool:
        """Whether no batch that may be worked on has a task, waiting, delayed or in anybody's hands."""
        batch_ids = list(self.priorities)
        if self._hands or not batch_ids:
            return not self._hands
        return all(counts.is_drained for counts in await self._tasks.counts(batch_ids))
