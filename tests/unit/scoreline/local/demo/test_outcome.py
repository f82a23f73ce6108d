"""The outcome of the demo is compared with its published figures."""

import pytest

from projections.verification.verify import Difference, VerificationResult
from scoreline.local.demo.outcome import (
    TargetResult,
    complaints,
    document,
    some_failed,
    target_results,
)
from tests.batches import changed
from tests.unit.scoreline.local.demo.demo_outcomes import outcome, record


def test_verdicts_are_compared_with_the_published_ones_one_by_one():
    """Different evaluations that pass are reported even if their number is the same."""
    records = [record(1, passed=True), record(2, passed=False), record(1, passed=True, target="b")]
    [found] = target_results(records, {"a": {"1": False, "2": True}})
    assert found == TargetResult("a", total=2, passed=1, published=1, differing=2)


def test_both_kinds_of_failure_are_shown():
    """A wrong number, and an answer without a number, however many wrong numbers come first."""
    wrong = [record(n, passed=False, reason="numeric: expected '1', got '2'") for n in range(9)]
    without = [record(10, passed=False, reason="numeric: 'A:' does not match the output: ''")]
    shown = some_failed([record(0, passed=True), *wrong, *without], of_each=1)
    assert shown == [wrong[0], without[0]]


def test_a_good_outcome_reports_no_problem():
    """The JSON document has no problem either."""
    assert list(complaints(outcome())) == []
    found = document(outcome())
    assert (found["batch_id"], found["verified"], found["retried"]) == ("demo", True, 1)
    assert [(each["passed"], each["total"]) for each in found["targets"]] == [(45, 200), (65, 200)]
    assert found["killed"]["executor"] == "demo-1-aaaa"
    assert found["seconds"] == 15.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": [TargetResult("a", 200, 44, 45, 1)]}, "a: 44 of 200 passed, 45 must pass"),
        ({"targets": [TargetResult("a", 200, 45, 45, 2)]}, "2 verdicts are not the authors'"),
        ({"snapshot": changed(outcome().snapshot, completed=399)}, "399 of 400 evaluations completed"),
        ({"verified": VerificationResult("demo", 400, 9, open=3)}, "3 evaluations have not ended"),
    ],
)
def test_each_unexpected_outcome_is_named(changes, message):
    """Each of these ends the demo with exit code 1 and a message that names it."""
    assert message in " ".join(complaints(outcome(**changes)))


def test_tables_that_differ_from_the_log_are_named():
    """The first difference is quoted, and the JSON document has the batch as not verified."""
    verified = VerificationResult("demo", 400, 9)
    verified.add(Difference("scorecards", "e-1", "score", "0", "1"))
    bad = outcome(verified=verified)
    [message] = complaints(bad)
    assert message.startswith("the tables differ from the log: ")
    assert "e-1" in message
    assert document(bad)["verified"] is False
