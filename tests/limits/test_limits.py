"""The short form of the randomized runs; the long form is `python -m tests.limits --runs 50`."""

import pytest

from domain.batch_spec import Limits
from tests.limits.measure import Call, InForce, violations
from tests.limits.plans import draw_plan
from tests.limits.virtual import run_in_virtual_time


@pytest.mark.parametrize("seed", [6, 8, 9, 10, 11])
def test_no_mix_of_batches_exceeds_the_strictest_limit_in_force(seed):
    """Two to four batches with limits of any kind begin and end on one lane, with one to four executors."""
    exceeded, calls = run_in_virtual_time(draw_plan(seed))
    assert exceeded == []
    assert calls > 20


@pytest.mark.parametrize(
    ("limits", "gap", "is_exceeded"),
    [
        (Limits(rpm=600), 0.1, False),
        (Limits(rpm=600), 0.08, True),
        (Limits(tpm=60_000), 0.1, False),
        (Limits(tpm=6_000), 0.1, True),
        (Limits(max_concurrency=5), 0.1, False),
        (Limits(max_concurrency=4), 0.1, True),
        (Limits(delay=0.1), 0.1, False),
        (Limits(delay=0.2), 0.1, True),
    ],
)
def test_the_measurement_notices_each_kind_of_excess(limits, gap, is_exceeded):
    """A hundred calls of 100 tokens and half a second each, evenly spaced."""
    moments = [number * gap for number in range(100)]
    calls = [Call("a", at, 100, at + 0.45) for at in moments]
    found = violations(calls, [InForce("b", limits, 0.0, 1e9)])
    assert bool(found) == is_exceeded, found
