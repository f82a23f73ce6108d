"""Results of a finished batch by evaluator, and its dead letters by reason."""

from projections.queries.results import dead_letter_groups, evaluator_results, first_failed
from tests.integration.scoreline.batch_harness import Harness


async def test_scores_are_aggregated_by_evaluator_and_variant(here: Harness) -> None:
    """A score without a verdict counts in the mean and is not decided."""
    await here.submit("nightly", ["passed", "failed", "passed", "dead"])
    await here.place.alter(
        """UPDATE scorecards SET scores = '[{"evaluator": "exact", "score": 0.5}]'"""
        " WHERE evaluation_id = 'nightly.00000003'"
    )
    [exact] = await evaluator_results(here.place.conn, "nightly")
    assert exact == (0, "exact", 3, 1, 2, 0.5)


async def test_the_first_failed_are_those_with_a_verdict(here: Harness) -> None:
    """Dead letters have none, and are reported elsewhere."""
    await here.submit("nightly", ["failed", "dead", "passed", "failed", "failed"])
    assert await first_failed(here.place.conn, "nightly", limit=2) == [
        "nightly.00000001",
        "nightly.00000004",
    ]


async def test_dead_letters_are_grouped_without_their_numbers_and_quotations(here: Harness) -> None:
    """Messages that differ in an id or a port have one reason; the most frequent is first."""
    await here.submit("nightly", ["dead", "dead", "dead", "passed"])
    for number, message in {
        1: "no such model",
        2: "port 80 of 'a' is closed",
        3: "port 81 of 'b' is closed",
    }.items():
        await here.place.alter(
            "UPDATE scorecards SET error = json_build_object('kind', 'x', 'message', %s::text)"
            " WHERE evaluation_id = %s",
            message,
            f"nightly.0000000{number}",
        )
    groups = await dead_letter_groups(here.place.conn, "nightly")
    assert [(group.kind, group.count_, group.example[-1]) for group in groups] == [
        ("x", 2, "2"),
        ("x", 1, "1"),
    ]
