"""Settings of provider batches."""

from dataclasses import dataclass
from datetime import timedelta

MOST_REQUESTS = 100_000
MOST_BYTES = 256 * 1024 * 1024
"""Anthropic's limits."""


@dataclass(frozen=True, slots=True)
class ProviderBatchSettings:
    """Sizes and intervals; the defaults bound the coordinator's memory."""

    max_requests: int = 10_000
    max_bytes: int = 32 * 1024 * 1024
    page: int = 500
    """Evaluations read, and results recorded, at a time."""
    first_poll: timedelta = timedelta(seconds=1)
    poll_factor: float = 1.5
    longest_poll: timedelta = timedelta(seconds=60)
    submit_timeout: timedelta = timedelta(minutes=5)
    """Time-out of a submission; after it, the result of the submission is unknown."""
    margin: timedelta = timedelta(minutes=1)
    """The further time to search for a submission without a response before it is repeated."""
    ended_margin: timedelta = timedelta(seconds=20)
    """The same after the provider itself replied with an error: the request is no longer in progress."""
    skew: timedelta = timedelta(hours=1)
    """How far the provider's clock may be behind that of Postgres."""
    interval: timedelta = timedelta(milliseconds=500)
    """Between two cycles."""

    def __post_init__(self) -> None:
        if not (1 <= self.max_requests <= MOST_REQUESTS and self.max_bytes <= MOST_BYTES):
            raise ValueError(
                f"a provider batch has at most {MOST_REQUESTS:,} requests and {MOST_BYTES:,} bytes"
            )
