"""Lines about blocked lanes: reason, since when, until when, and how many tasks wait."""

from datetime import UTC, datetime

import pytest

from executor.lanes.contract import BlockedBy, LaneLimit, LaneView
from scoreline.reports.lanes import LaneWait, lane_lines, lanes_document, limit_lines

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
AT = NOW.timestamp()


def lines(behind: int = 3, **view: object) -> list[str]:
    return list(lane_lines([LaneWait(LaneView("anthropic:me:all", **view), behind)], NOW))  # type: ignore[arg-type]  # any field


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ({"blocked_by": BlockedBy.RATE, "rpm": 120}, "is at its limit of 120 requests a minute"),
        (
            {"blocked_by": BlockedBy.TOKENS, "tpm": 600, "until": AT + 5},
            "has used up its 600 tokens a minute, the next call may start in 5.0 s, at 12:00:05.000 UTC",
        ),
        (
            {"blocked_by": BlockedBy.CONCURRENCY, "in_flight": 4},
            "has 4 calls in flight, as many as it takes",
        ),
        (
            {"blocked_by": BlockedBy.RETRY_AFTER, "until": AT + 60},
            (
                "is throttled by the provider (Retry-After), the next call may start in 1 min 0 s, "
                "at 12:01:00.000 UTC"
            ),
        ),
        (
            {"blocked_by": BlockedBy.BREAKER, "failures": 5, "until": AT + 30},
            (
                "does not answer: 5 calls in a row failed, "
                "one call will try again in 30.0 s, at 12:00:30.000 UTC"
            ),
        ),
        (
            {"blocked_by": BlockedBy.BREAKER, "failures": 5, "in_flight": 1},
            "does not answer: 5 calls in a row failed, one call is trying again",
        ),
        (
            {"blocked_by": BlockedBy.BREAKER, "failures": 5},
            "does not answer: 5 calls in a row failed, the next call will try again",
        ),
    ],
)
def test_each_reason_is_a_sentence(view, words):
    """The line of a lane has the reason, the duration and the number of waiting tasks."""
    assert lines(since=AT - 12, **view) == [f"anthropic:me:all {words} (for 12.0 s); 3 tasks behind it."]


STRICT = LaneLimit("strict-1 limits", rpm=120.0, max_concurrency=4)
LOOSE = LaneLimit("loose-2 targets.a b", rpm=600.0, tpm=600.0, gap=0.5)


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (
            {"blocked_by": BlockedBy.RATE, "rpm": 120.0},
            "at its limit of 120 requests a minute (batch strict-1, limits)",
        ),
        ({"blocked_by": BlockedBy.RATE, "rpm": 60.0}, "at its limit of 60 requests a minute (for"),
        (
            {"blocked_by": BlockedBy.TOKENS, "tpm": 600.0},
            "its 600 tokens a minute (batch loose-2, targets.a b)",
        ),
        (
            {"blocked_by": BlockedBy.CONCURRENCY, "in_flight": 4},
            "as many as it takes (batch strict-1, limits)",
        ),
        ({"blocked_by": BlockedBy.CONCURRENCY, "in_flight": 3}, "as many as it takes (for"),
        ({"blocked_by": BlockedBy.GAP}, "leaves a gap between two calls (batch loose-2, targets.a b)"),
    ],
)
def test_a_limit_that_holds_calls_back_is_shown_with_its_origin(view, words):
    """The line names the batch that declared the limit, unless it is the provider's or learnt."""
    [line] = lines(since=AT - 12, limits=(LOOSE, STRICT), **view)
    assert words in line


def test_every_limit_in_force_is_listed_with_its_origin():
    """Text and JSON both list each limit with the batch and the key that declared it."""
    waits = [LaneWait(LaneView("one", limits=(LOOSE, STRICT)), 0), LaneWait(LaneView("two"), 0)]
    [line] = limit_lines(waits)
    assert line == (
        "Limits in force on one: 600 requests a minute, 600 tokens a minute, 0.5 s between two calls "
        "(batch loose-2, targets.a b); 120 requests a minute, 4 calls in flight (batch strict-1, limits)."
    )
    [one, two] = lanes_document(waits)
    assert two["limits"] == []
    assert one["limits"][1] == {
        "batch_id": "strict-1",
        "key": "limits",
        "rpm": 120.0,
        "tpm": None,
        "max_concurrency": 4,
        "delay": None,
    }


def test_without_waiting_tasks_only_a_blocked_lane_is_reported():
    """A lane under Retry-After is reported, since claimed tasks may wait for it."""
    retry_after = {"blocked_by": BlockedBy.RETRY_AFTER, "until": AT + 60}
    assert [
        len(lines(0, **view))
        for view in (retry_after, {"blocked_by": BlockedBy.RATE}, {"blocked_by": BlockedBy.BREAKER})
    ] == [
        1,
        0,
        0,
    ]
