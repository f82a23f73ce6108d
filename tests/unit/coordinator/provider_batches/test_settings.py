"""Settings of provider batches stay within the provider's limits."""

import pytest

from coordinator.provider_batches.settings import MOST_BYTES, MOST_REQUESTS, ProviderBatchSettings


@pytest.mark.parametrize(
    "sizes", [{"max_requests": 0}, {"max_requests": MOST_REQUESTS + 1}, {"max_bytes": MOST_BYTES + 1}]
)
def test_sizes_beyond_the_limits_are_refused(sizes):
    """The error has both limits."""
    with pytest.raises(ValueError, match="at most 100,000 requests and 268,435,456 bytes"):
        ProviderBatchSettings(**sizes)


def test_the_limits_themselves_are_allowed():
    """They are inclusive, and one request is a batch."""
    largest = ProviderBatchSettings(max_requests=MOST_REQUESTS, max_bytes=MOST_BYTES)
    assert (largest.max_requests, largest.max_bytes) == (MOST_REQUESTS, MOST_BYTES)
    assert ProviderBatchSettings(max_requests=1).max_requests == 1
