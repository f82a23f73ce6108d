"""What people read of lanes: why, since when, until when, and how many tasks stand behind each."""

from datetime import UTC, datetime

import pytest

from executor.lanes.contract import LaneView, Why
from scoreline.batches.lanes import LaneWait, lane_lines

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
AT = NOW.timestamp()


def said(behind: int = 3, **view: object) -> list[str]:
    return list(lane_lines([LaneWait(LaneView("anthropic:me:all", **view), behind)], NOW))  # type: ignore[arg-type]  # any field


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ({"why": Why.RATE, "rpm": 120}, "is at its limit of 120 requests a minute"),
        (
            {"why": Why.TOKENS, "tpm": 600, "until": AT + 5},
            "has used up its 600 tokens a minute, the next call may start in 5.0 s, at 12:00:05.000 UTC",
        ),
        ({"why": Why.CONCURRENCY, "in_flight": 4}, "has 4 calls in flight, as many as it takes"),
        (
            {"why": Why.RETRY_AFTER, "until": AT + 60},
            "asked for patience (Retry-After), the next call may start in 1 min 0 s, at 12:01:00.000 UTC",
        ),
        (
            {"why": Why.BREAKER, "failures": 5, "until": AT + 30},
            (
                "does not answer: 5 calls in a row failed, "
                "one call will try again in 30.0 s, at 12:00:30.000 UTC"
            ),
        ),
        (
            {"why": Why.BREAKER, "failures": 5, "in_flight": 1},
            "does not answer: 5 calls in a row failed, one call is trying again",
        ),
        (
            {"why": Why.BREAKER, "failures": 5},
            "does not answer: 5 calls in a row failed, the next call will try again",
        ),
    ],
)
def test_each_reason_is_a_sentence(view, words):
    """With since when, and how many stand behind it."""
    assert said(since=AT - 12, **view) == [f"anthropic:me:all {words} (for 12.0 s); 3 tasks behind it."]


def test_only_a_lane_that_is_shut_is_told_of_where_nothing_stands_behind_it():
    """What is in hand may wait for it; a breaker whose time is over keeps nobody."""
    patience = {"why": Why.RETRY_AFTER, "until": AT + 60}
    assert [len(said(0, **view)) for view in (patience, {"why": Why.RATE}, {"why": Why.BREAKER})] == [
        1,
        0,
        0,
    ]
