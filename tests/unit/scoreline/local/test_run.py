"""How many executors a local run starts."""

import pytest

from scoreline.local.run import local_executors


@pytest.mark.parametrize(
    ("pending", "concurrency", "executors"),
    [(0, 16, 1), (1, 16, 1), (16, 16, 1), (17, 16, 2), (64, 16, 4), (10_000, 16, 4), (4, 1, 4), (2, 1, 2)],
)
def test_a_local_run_starts_as_many_executors_as_its_evaluations_can_fill(
    pending: int, concurrency: int, executors: int
) -> None:
    """At least one, at most four."""
    assert local_executors(pending, concurrency) == executors
