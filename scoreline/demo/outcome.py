"""What a demo came to: what the tables say, and what was done to the events on their way there."""

from dataclasses import dataclass, field
from typing import Any

from psycopg import AsyncConnection

from projections import queries
from projections.queries import BatchStatus, BridgedGap, Unfinished
from projections.verify import Verified, verify
from scoreline.demo.disorder import Mischief

LISTED = 20


@dataclass(slots=True)
class Outcome:
    """All a report needs."""

    batch_id: str
    seed: int
    expected: frozenset[str]
    status: BatchStatus | None = None
    verdicts: dict[str, int] = field(default_factory=dict)
    reordered: tuple[int, int] = (0, 0)
    bridges: list[BridgedGap] = field(default_factory=list)
    unfinished: list[Unfinished] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    verified: Verified | None = None
    mischief: list[Mischief] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    restarts: int = 0
    seconds: float = 0.0

    @property
    def stuck(self) -> int:
        """Evaluations that were begun and have not ended."""
        return len(self.unfinished) + len(self.unknown)

    @property
    def is_good(self) -> bool:
        """Whether all ended, and the tables are what the log says."""
        return self.stuck == 0 and self.verified is not None and not self.verified.differing

    @property
    def is_over(self) -> bool:
        """Whether every evaluation has ended, as far as the counters say."""
        return self.status is not None and (self.status.total, self.status.pending) == (
            len(self.expected),
            0,
        )

    async def look(self, conn: AsyncConnection[Any]) -> None:
        """Read the counters."""
        self.status = await queries.batch_status(conn, self.batch_id)

    async def look_closely(self, conn: AsyncConnection[Any]) -> None:
        """Read everything a report shows."""
        await self.look(conn)
        self.verdicts = await queries.batch_verdicts(conn, self.batch_id)
        self.reordered = await queries.batch_reordered(conn, self.batch_id)
        self.bridges = await queries.batch_bridges(conn, self.batch_id, limit=LISTED)
        self.unfinished = await queries.batch_unfinished(conn, self.batch_id, limit=len(self.expected))
        self.unknown = sorted(self.expected - await queries.batch_known(conn, self.batch_id))

    async def hold_against_the_log(self, postgres_url: str, *, shards: int) -> None:
        """Fold the log again and compare it with the tables."""
        if self.status is not None:
            async with await AsyncConnection.connect(postgres_url, connect_timeout=3) as conn:
                self.verified = await verify(conn, self.batch_id, shards=shards)


def percentile(values: list[float] | list[int], share: float) -> float:
    """Return the value that a share of all others do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
