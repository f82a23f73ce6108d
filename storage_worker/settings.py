"""Settings of a storage worker."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from eventlog.keys import DEFAULT_SHARDS


class Ordering(StrEnum):
    """Whether a gap is waited for."""

    STRICT = "strict"
    DEGRADED = "degraded"
    """Gaps are bridged at once: for incidents in which completion matters more than order."""


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Servers to read from and write to, time-outs and batch sizes."""

    redis_url: str
    postgres_url: str
    consumer: str
    shards: int = DEFAULT_SHARDS
    ordering: Ordering = Ordering.STRICT
    gap_timeout: timedelta = timedelta(seconds=30)
    gap_warning: timedelta = timedelta(seconds=5)
    batch_size: int = 2_000
    claim_idle: timedelta = timedelta(seconds=30)
    """How long a wake-up may be pending with one worker before another claims it."""
    health_port: int | None = None
    scan_interval: timedelta = timedelta(minutes=1)
    """How often the key space is searched for streams that no wake-up and no row leads to."""

    @property
    def sweep_interval(self) -> timedelta:
        """Often enough that a gap is bridged within one and a half time-outs."""
        return max(min(self.gap_timeout / 2, timedelta(seconds=15)), timedelta(milliseconds=100))
