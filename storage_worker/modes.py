"""What kind of target a batch asks, for labels: its type, looked up once a batch."""

import logging
from collections.abc import Collection, Mapping

from psycopg_pool import AsyncConnectionPool

from projections.database.connection import transaction
from projections.database.errors import DatabaseUnavailable
from projections.sql import query

logger = logging.getLogger(__name__)

MAX_KNOWN_BATCHES = 10_000


class Modes:
    """The modes of batches; without a database nobody knows any."""

    def __init__(self, pool: AsyncConnectionPool | None = None) -> None:
        self._pool = pool
        self._known: dict[str, str] = {}

    async def of(self, batch_ids: Collection[str]) -> Mapping[str, str]:
        """Return the modes of batches, of those that can be found out now."""
        unknown = sorted(set(batch_ids) - self._known.keys())
        if unknown and self._pool:
            if len(self._known) > MAX_KNOWN_BATCHES:
                self._known.clear()
            try:
                async with transaction(self._pool) as conn:
                    cursor = await conn.execute(query("batch_target_types"), [unknown])
                    self._known |= dict(await cursor.fetchall())
            except DatabaseUnavailable as error:  # the evaluations are stored without the label
                logger.debug("could not look up modes", extra={"error": str(error)})
        return self._known
