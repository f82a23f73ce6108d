"""What events add to a batch's counters."""

from dataclasses import astuple
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from eventlog import payloads as p
from eventlog.events import Event
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor, replay
from projections.folds.progress import Progress
from projections.folds.scorecard import scorecard
from tests.builders import arrive, event, history

AT_ONCE = 2**62


def tokens(count: int) -> p.TokenUsage:
    return p.TokenUsage(input_tokens=count - 1, output_tokens=1)


ANSWER = p.Responded(output="4", usage=tokens(10), cost_usd=0.1)
CACHED = p.Responded(output="4", usage=tokens(10), cost_usd=0.1, cached=True)
JUDGED = p.Scored(evaluator="judge", score=1.0, usage=tokens(5), cost_usd=0.02)
TOTALS = p.Completed(verdict="passed", score=1.0, usage=tokens(15), cost_usd=0.12)
PAID: Any = {"responded": ANSWER, "scored": JUDGED, "completed": TOTALS}
STRAIGHT = "queued provisioning running responded scored completed"


def spent(*events: Event, cursor: Cursor | None = None, bridge: bool = False) -> tuple[int, str]:
    """Walk, and count the spending of every step."""
    start = cursor or Cursor()
    walked = replay(start, arrive(events), bridge_until_ms=AT_ONCE if bridge else None)
    progress, phase = Progress(), start.phase
    for step in walked.steps:
        progress.add_spending(step, before=phase if step.moved else step.phase)
        phase = step.phase if step.moved else phase
    return progress.tokens, str(progress.cost_usd)


# What is paid.


def test_answers_and_scores_are_counted_as_they_come():
    """The totals in `completed` repeat them, so they are not counted again."""
    assert spent(*history(STRAIGHT, **PAID)) == (15, "0.12")


def test_totals_count_where_no_answer_came_before_them():
    """Code that answers and ends in one event has been paid for all the same."""
    assert spent(*history("queued provisioning running completed", **PAID)) == (15, "0.12")


def test_a_cached_answer_costs_nothing():
    """It was paid for when it was first asked for; its scores are new."""
    assert spent(*history(STRAIGHT, **{**PAID, "responded": CACHED})) == (5, "0.02")


def test_what_a_replaced_attempt_paid_was_paid():
    """Stale answers and scores count; money does not come back."""
    stale = history("responded scored", first=3, **PAID)
    assert spent(*stale, cursor=Cursor(2, 0, Phase.QUEUED)) == (15, "0.12")


def test_the_totals_of_a_stale_end_are_not_counted():
    """Its parts are, where they are on record."""
    *_, responded, scored, completed = history(STRAIGHT, **PAID)
    fenced = [event("queued:lost", attempt=2), responded, scored, completed]
    assert spent(*fenced, cursor=Cursor(1, 2, Phase.RUNNING)) == (15, "0.12")


def test_a_rejected_answer_was_paid_too():
    """Illegal in its place, and on the bill."""
    assert spent(*history("queued responded", **PAID)) == (10, "0.1")


def test_a_bridged_end_counts_its_totals_and_its_late_parts_do_not_count_again():
    """Whether the parts turn up beyond the hole or after the bridge."""
    queued, claim, _, responded, scored, completed = history(STRAIGHT, **PAID)
    assert spent(queued, claim, responded, scored, completed, bridge=True) == (15, "0.12")
    assert spent(queued, claim, completed, bridge=True) == (15, "0.12")
    assert spent(responded, scored, cursor=Cursor(1, 5, Phase.COMPLETED)) == (0, "0")


def test_late_parts_of_an_attempt_that_did_not_complete_count():
    """A failure carries no totals: its answer is the only bill."""
    _, _, _, responded, _ = history("queued provisioning running responded failed", **PAID)
    assert spent(responded, cursor=Cursor(1, 4, Phase.FAILED)) == (10, "0.1")


def test_an_answer_that_travels_in_an_opening_is_not_paid_again():
    """`queued` brings along what an earlier attempt has on record."""
    known = p.Queued(case=p.Case(id="c"), answer=p.Answer(output="4", usage=tokens(10), cost_usd=0.1))
    assert spent(*history("queued provisioning", queued=known)) == (0, "0")


def test_bites_count_what_one_look_counts():
    """However a history is cut, it costs the same."""
    events = history(STRAIGHT, **PAID)
    for cut in range(len(events) + 1):
        first = replay(Cursor(), arrive(events[:cut])).cursor
        parts = [spent(*events[:cut]), spent(*events[cut:], cursor=first)]
        assert sum(count for count, _ in parts) == 15, f"cut at {cut}"


# How evaluations end.


def ending(data: p.AnyPayload) -> Progress:
    counted = Progress()
    counted.add_ending(scorecard(event(data), bridged=False))
    return counted


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (p.Completed(verdict="passed", score=0.5), {"completed": 1, "passed": 1, "scored": 1}),
        (p.Completed(verdict="failed", score=0.5), {"completed": 1, "passed": 0, "scored": 1}),
        (p.Completed(verdict="passed"), {"completed": 1, "passed": 1, "scored": 0}),
        (p.Failed(error=p.ErrorDetail(kind="k")), {"failed": 1, "completed": 0}),
        (p.TimedOut(limit="task", seconds=1), {"timed_out": 1, "completed": 0}),
        (p.Cancelled(by="me"), {"cancelled": 1, "completed": 0}),
    ],
)
def test_each_ending_has_its_counter(data, expected):
    """A completed evaluation without a score counts as completed, not as scored."""
    counted = ending(data)
    assert {name: getattr(counted, name) for name in expected} == expected
    assert counted.score_sum == (Decimal("0.5") if counted.scored else 0)


@pytest.mark.parametrize(
    "data", [p.Failed(error=p.ErrorDetail(kind="k")), p.TimedOut(limit="task", seconds=1)]
)
def test_taking_back_a_settled_end_undoes_its_counting(data):
    """Ended and reopened comes to nothing."""
    counted = ending(data)
    counted.remove_ending(Phase(event(data).type))
    assert not counted


@pytest.mark.parametrize("phase", [Phase.COMPLETED, Phase.CANCELLED, Phase.RUNNING])
def test_what_is_not_settled_can_not_be_taken_back(phase):
    """Final is final."""
    with pytest.raises(ValueError, match="is not settled"):
        Progress().remove_ending(phase)


# Sums.


def test_every_counter_is_summed():
    """A column forgotten in the sum would stay at what the first worker wrote."""
    ones, twos = Progress(*range(1, 13)), Progress(*range(2, 26, 2))
    ones += Progress(*range(1, 13))
    assert astuple(ones) == astuple(twos)
    assert all(before < after for before, after in pairwise(astuple(ones)))


def test_nothing_added_is_nothing():
    """An empty sum needs no write; one that only takes back does."""
    assert not Progress()
    assert Progress(failed=-1)
