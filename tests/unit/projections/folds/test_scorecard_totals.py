"""Totals that a producer omits from `completed` are folded from its attempt."""

import json
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from eventlog import payloads as p
from eventlog.codec import encode
from eventlog.events import Event
from projections.folds.scorecard import Scorecard
from tests.builders import EVALUATION, history
from tests.storage_world import World

WORDS = "queued provisioning running responded scored scored completed"
ANSWER = p.Responded(
    output="4", usage=p.TokenUsage(input_tokens=7, output_tokens=1), cost_usd=0.1, latency_ms=12.5
)
JUDGED = p.Scored(evaluator="judge", score=0.5, usage=p.TokenUsage(input_tokens=3), cost_usd=0.2)
EXACT = p.Scored(evaluator="exact", score=1.0, passed=True)


def life(**completed: Any) -> list[tuple[Event, bytes]]:
    """Make a history whose `completed` has only the given fields."""
    *before, end = history(WORDS, responded=ANSWER)
    events = [before[0], before[1], before[2], before[3]]
    for place, score in ((4, JUDGED), (5, EXACT)):
        events.append(history("scored", first=place, scored=score)[0])
    bare = json.loads(encode(end)) | {"data": {"verdict": "passed", **completed}}
    return [*((each, encode(each)) for each in events), (end, json.dumps(bare).encode())]


async def card(records: list[tuple[Event, bytes]], *cuts: int) -> Scorecard:
    """Store a history in several passes that end at these positions."""
    world = World()
    storage = world.storage()
    for first, last in zip((0, *cuts), (*cuts, len(records)), strict=True):
        for each, body in records[first:last]:
            world.xadd(each, event=body)
        await storage.store([EVALUATION])
    return world.tables.scorecards[EVALUATION]


async def test_omitted_totals_are_folded_however_the_history_is_split():
    """Every split into up to three passes gives the same scorecard."""
    records = life()
    expected = await card(records)
    assert (expected.tokens, expected.cost_usd, expected.latency_ms) == (11, Decimal("0.3"), 12.5)
    assert expected.score == 0.75
    assert [(one["evaluator"], one["score"]) for one in json.loads(expected.scores)] == [
        ("judge", 0.5),
        ("exact", 1.0),
    ]
    for cuts in [*combinations(range(1, 7), 1), *combinations(range(1, 7), 2)]:
        assert await card(records, *cuts) == expected, cuts


@pytest.mark.parametrize(
    ("fields", "column", "expected"),
    [
        ({"usage": {"input_tokens": 0, "output_tokens": 0}}, "tokens", 0),
        ({"cost_usd": 0.0}, "cost_usd", Decimal(0)),
        ({"cost_usd": 9.5}, "cost_usd", Decimal("9.5")),
        ({"latency_ms": 1.0}, "latency_ms", 1.0),
        ({"scores": []}, "scores", b"[]"),
        ({"scores": []}, "score", None),
        ({"score": 0.25}, "score", 0.25),
    ],
)
async def test_totals_in_completed_win_over_folded_ones(
    fields: dict[str, Any], column: str, expected: object
):
    """A field that is present is the producer's total, even if it is zero or an empty list."""
    for cuts in ((), (5,)):
        assert getattr(await card(life(**fields), *cuts), column) == expected


async def test_scores_of_an_earlier_attempt_are_not_folded_into_a_later_one():
    """Totals are folded per attempt."""
    first = history(
        "queued provisioning running responded scored retrying", responded=ANSWER, scored=JUDGED
    )
    *second, end = history("queued:retry provisioning running responded completed", attempt=2)
    bare = json.loads(encode(end)) | {"data": {"verdict": "passed"}}
    records = [*((each, encode(each)) for each in (*first, *second)), (end, json.dumps(bare).encode())]
    for cuts in ((), (6,), (6, 10)):
        found = await card(records, *cuts)
        assert (found.tokens, found.scores, found.score) == (8, b"[]", None)
