"""How events change the counters of a batch."""

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
    """Replay, and sum the spend of every step."""
    start = cursor or Cursor()
    walked = replay(start, arrive(events), bridge_until_ms=AT_ONCE if bridge else None)
    progress, phase = Progress(), start.phase
    for step in walked.steps:
        progress.add_spending(step, before=phase if step.moved else step.phase)
        phase = step.phase if step.moved else phase
    return progress.tokens, str(progress.cost_usd)


# Spend.


def test_answers_and_scores_are_counted_as_they_arrive():
    """The totals in `completed` repeat them, and are not counted again."""
    assert spent(*history(STRAIGHT, **PAID)) == (15, "0.12")


def test_totals_are_counted_if_no_answer_preceded_them():
    """A producer that answers and completes in one event reports its cost only there."""
    assert spent(*history("queued provisioning running completed", **PAID)) == (15, "0.12")


def test_a_cached_answer_costs_nothing():
    """It was paid for in an earlier batch; its scores are new."""
    assert spent(*history(STRAIGHT, **{**PAID, "responded": CACHED})) == (5, "0.02")


def test_the_spend_of_a_replaced_attempt_counts():
    """Stale answers and scores were paid for."""
    stale = history("responded scored", first=3, **PAID)
    assert spent(*stale, cursor=Cursor(2, 0, Phase.QUEUED)) == (15, "0.12")


def test_the_totals_of_a_stale_end_are_not_counted():
    """Its answer and scores are, if they are stored."""
    *_, responded, scored, completed = history(STRAIGHT, **PAID)
    fenced = [event("queued:lost", attempt=2), responded, scored, completed]
    assert spent(*fenced, cursor=Cursor(1, 2, Phase.RUNNING)) == (15, "0.12")


def test_a_rejected_answer_counts():
    """It was paid for, although the event is illegal."""
    assert spent(*history("queued responded", **PAID)) == (10, "0.1")


def test_a_bridged_end_counts_its_totals_and_not_its_late_parts():
    """This holds whether the parts arrived beyond the gap or after the bridge."""
    queued, claim, _, responded, scored, completed = history(STRAIGHT, **PAID)
    assert spent(queued, claim, responded, scored, completed, bridge=True) == (15, "0.12")
    assert spent(queued, claim, completed, bridge=True) == (15, "0.12")
    assert spent(responded, scored, cursor=Cursor(1, 5, Phase.COMPLETED)) == (0, "0")


def test_late_parts_of_an_attempt_that_did_not_complete_count():
    """A failure has no totals, so the answer has the only record of the cost."""
    _, _, _, responded, _ = history("queued provisioning running responded failed", **PAID)
    assert spent(responded, cursor=Cursor(1, 4, Phase.FAILED)) == (10, "0.1")


def test_an_answer_in_an_opening_is_not_counted_again():
    """`queued` carries the answer that an earlier attempt recorded."""
    known = p.Queued(case=p.Case(id="c"), answer=p.Answer(output="4", usage=tokens(10), cost_usd=0.1))
    assert spent(*history("queued provisioning", queued=known)) == (0, "0")


def test_several_passes_count_the_same_as_one():
    """However a history is split, its spend is the same."""
    events = history(STRAIGHT, **PAID)
    for cut in range(len(events) + 1):
        first = replay(Cursor(), arrive(events[:cut])).cursor
        parts = [spent(*events[:cut]), spent(*events[cut:], cursor=first)]
        assert sum(count for count, _ in parts) == 15, f"cut at {cut}"


# Ends of evaluations.


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
def test_each_end_has_its_counter(data, expected):
    """A completed evaluation without a score counts as completed, not as scored."""
    counted = ending(data)
    assert {name: getattr(counted, name) for name in expected} == expected
    assert counted.score_sum == (Decimal("0.5") if counted.scored else 0)


@pytest.mark.parametrize(
    "data", [p.Failed(error=p.ErrorDetail(kind="k")), p.TimedOut(limit="task", seconds=1)]
)
def test_reopening_a_settled_evaluation_undoes_its_counters(data):
    """An end and its reopening sum to zero."""
    counted = ending(data)
    counted.remove_ending(Phase(event(data).type))
    assert not counted


@pytest.mark.parametrize("phase", [Phase.COMPLETED, Phase.CANCELLED, Phase.RUNNING])
def test_only_a_settled_evaluation_can_be_taken_back(phase):
    """Final phases raise an error."""
    with pytest.raises(ValueError, match="is not settled"):
        Progress().remove_ending(phase)


# Sums.


def test_every_counter_is_summed():
    """A column missing from the sum would keep the value of the first worker."""
    ones, twos = Progress(*range(1, 13)), Progress(*range(2, 26, 2))
    ones += Progress(*range(1, 13))
    assert astuple(ones) == astuple(twos)
    assert all(before < after for before, after in pairwise(astuple(ones)))


def test_an_empty_sum_is_empty():
    """It needs no write; a sum that only decrements does."""
    assert not Progress()
    assert Progress(failed=-1)
