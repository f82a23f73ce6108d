"""How the tables depend on the order of arrival.

Within an attempt order does not matter. Between attempts the sequence 0 of a higher attempt is a fence:
an event of a lower attempt takes effect if it arrived before that fence, and is stale if it arrived after.
So the tables are a function of the events and of those that arrived before each fence, and of nothing else.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from eventlog.events import Event
from projections.folds.refold import refold
from tests.builders import history
from tests.disordered import in_order, lives
from tests.dumps import memory_dump
from tests.unit.storage_worker.test_storage_permutations import in_many_passes, in_one_pass

SWAPS = 400


def commute(one: Event, other: Event) -> bool:
    """Return whether two adjacent events may be swapped: not if one is a fence for the other's attempt."""
    if one.evaluation_id != other.evaluation_id:
        return True
    lower, higher = sorted((one, other), key=lambda each: each.attempt)
    return lower.attempt == higher.attempt or higher.sequence > 0


def reordered(random: Random, events: Sequence[Event]) -> list[Event]:
    """Reorder events at random, but keep the set of events that arrived before each fence."""
    order = list(events)
    for _ in range(SWAPS if len(order) > 1 else 0):
        at = random.randrange(len(order) - 1)
        if commute(order[at], order[at + 1]):
            order[at], order[at + 1] = order[at + 1], order[at]
    return order


@given(st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_tables_depend_only_on_the_events_before_each_fence(random: Random) -> None:
    """However the rest is reordered, duplicated, split and raced, the tables are byte for byte equal."""
    arrived = in_order(lives(random))
    random.shuffle(arrived)
    expected = memory_dump(asyncio.run(in_one_pass(arrived)))
    again = reordered(random, arrived)
    again += random.sample(again, min(len(again), 3))
    tables, _ = asyncio.run(in_many_passes(random, again))
    assert memory_dump(tables) == expected


def test_a_fence_that_arrives_first_makes_the_lower_attempt_stale() -> None:
    """The order of a fence and the events of lower attempts decides whether these are applied."""
    first = history("queued provisioning running retrying")
    second = history("queued:retry provisioning running completed", attempt=2)
    before = asyncio.run(in_one_pass([*first, *second]))
    after = asyncio.run(in_one_pass([*second, *first]))
    assert Counter(kept.verdict for kept in before.events.values()) == {"applied": 8}
    assert Counter(kept.verdict for kept in after.events.values()) == {"applied": 4, "stale": 4}
    assert before.scorecards == after.scorecards


FAILED = history("queued failed")
RETRY, *RETRIED = history("queued:retry provisioning", attempt=3)
REOPENED = history("queued:operator provisioning running completed", attempt=2)
BEYOND_CLOSING = history("running", first=2)
NO_OPENING, *UNOPENED = history("running provisioning")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([*FAILED, RETRY, *RETRIED, *REOPENED[:1]], [*FAILED, RETRY, *REOPENED[:1], *RETRIED]),
        ([*FAILED, RETRY, *RETRIED, *REOPENED], [*FAILED, RETRY, *REOPENED, *RETRIED]),
        ([*FAILED, *REOPENED, RETRY, *RETRIED], [*FAILED, *REOPENED, *RETRIED, RETRY]),
        ([*FAILED, *BEYOND_CLOSING], [*BEYOND_CLOSING, *FAILED]),
        ([NO_OPENING, *UNOPENED], [*UNOPENED, NO_OPENING]),
    ],
    ids=["lower attempt opened", "lower attempt completed", "final", "beyond closing", "wrong opening"],
)
def test_a_rejected_event_has_one_reason_in_every_order(one: list[Event], other: list[Event]) -> None:
    """The quarantine holds the reason that all orders have in common, not the state at the arrival."""
    assert all(commute(a, b) for a in RETRIED for b in REOPENED)
    expected = asyncio.run(in_one_pass(one))
    assert expected.quarantined
    assert memory_dump(asyncio.run(in_one_pass(other))) == memory_dump(expected)
    tables, _ = asyncio.run(in_many_passes(Random(0), other))
    assert memory_dump(tables) == memory_dump(expected)


def test_a_refold_gives_the_reason_that_the_storage_worker_gave() -> None:
    """What a rebuild inserts again is the row that was lost."""
    tables = asyncio.run(in_one_pass([*FAILED, *BEYOND_CLOSING, *REOPENED, RETRY, *RETRIED]))
    (held,) = tables.evaluations.values()
    again = refold(held.row, 0, sorted(tables.events.values()), {}).change.quarantined
    assert {bad.id: bad for bad in again} == tables.quarantined
