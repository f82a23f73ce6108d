"""The pieces of the demo: its data, its expected figures, and which executor it may kill."""

from dataclasses import replace
from pathlib import Path

import pytest

from eventlog import payloads as p
from projections.queries.batches import BatchSnapshot
from projections.verification.verify import Difference, VerificationResult
from scoreline.local.demo import gsm8k
from scoreline.local.demo.executor_kill import KilledExecutor, TaskProgress, held
from scoreline.local.demo.outcome import (
    Outcome,
    TargetResult,
    complaints,
    document,
    some_failed,
    target_results,
)
from scoreline.local.demo.report import next_steps
from scoreline.reports.export_record import Record
from scoreline.submit.spec.builder import make_plan
from taskqueue.tasks import Task
from tests.builders import EVALUATION, START, history, wire
from tests.unit.scoreline.submit.submission_harness import submitted

TARGETS = ["6b_finetuning", "175b_finetuning"]
KILLED = KilledExecutor("executor 1", "demo-1-aaaa", 4242, 140, ("demo.00000007",))
DIED_AND_CAME_BACK = [
    *history("queued provisioning"),
    *history("queued:lost provisioning running responded completed", attempt=2),
]


def record(place: int, *, passed: bool, reason: str = "", target: str = "a") -> Record:
    return Record(
        f"e-{target}-{place}", str(place), 0, target, "{input}", 1, "completed",
        "passed" if passed else "failed", passed, float(passed), (), reason, "", "", "", None,
        (), {}, None, 1, 0, None, None, False, 0.0, 0.0, None, False, START,
    )  # fmt: skip


def outcome(**changes: object) -> Outcome:
    snapshot = BatchSnapshot(
        "demo", "submitted", "demo", "default", "questions", "completed", "", None, START, None, START,
        START, total=400, completed=400, passed=110,
    )  # fmt: skip
    targets = [TargetResult("a", 200, 45, 45), TargetResult("b", 200, 65, 65)]
    good = Outcome(
        snapshot, targets, [record(1, passed=False)], VerificationResult("demo", 400, 2_008),
        verified_in=0.1, killed=KILLED, again=1, seconds=15.04,
    )  # fmt: skip
    return replace(good, **changes)  # type: ignore[arg-type]  # whatever a test wants to change


def test_the_published_figures_are_45_and_65():
    """The published verdicts in the data add up to the figures that the demo promises."""
    found = gsm8k.published(TARGETS)
    assert [sum(found[target].values()) for target in TARGETS] == [45, 65]
    assert all(list(found[target]) == [str(place) for place in range(1, 201)] for target in TARGETS)


async def test_the_demo_data_is_a_whole_batch():
    """The spec makes 400 evaluations, each with its recorded answer; no target is called."""
    evaluations = await submitted(make_plan(gsm8k.SPEC, {}, folder=Path.cwd()))
    assert len(evaluations) == 400
    assert all(each.answer and each.answer.output for each in evaluations)


def test_the_license_lies_beside_the_data():
    """The data is distributed together with its license."""
    text = (gsm8k.FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith("MIT License")
    assert "OpenAI" in text


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
        ({"snapshot": replace(outcome().snapshot, completed=399)}, "399 of 400 evaluations completed"),
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


@pytest.mark.parametrize(
    ("stream", "attempt", "found"),
    [
        (history("queued"), 1, TaskProgress.UNCLAIMED),
        (history("queued provisioning"), 1, TaskProgress.CLAIMED),
        (history("queued provisioning running responded"), 1, TaskProgress.CLAIMED),
        (history("queued provisioning running responded completed"), 1, TaskProgress.FINISHED),
        (history("queued provisioning running retrying"), 1, TaskProgress.FINISHED),
        (DIED_AND_CAME_BACK, 2, TaskProgress.FINISHED),
        (DIED_AND_CAME_BACK, 1, TaskProgress.CLAIMED),
    ],
)
def test_only_claimed_and_open_attempts_count(stream, attempt, found):
    """A task counts as claimed while the executor's attempt has not ended."""
    assert held(Task(EVALUATION, attempt), wire(stream), "executor-1") is found


def test_the_claim_of_another_executor_does_not_count():
    """An executor that lost the race for an attempt does not hold it."""
    other = history("queued provisioning", provisioning=p.Provisioning("executor-2", "nonce-2"))
    assert held(Task(EVALUATION, 1), wire(other), "executor-1") is TaskProgress.UNCLAIMED


def test_the_next_steps_name_what_was_claimed():
    """Each command can be typed as printed, except the comparison, which needs a second batch."""
    steps = next_steps(outcome())
    assert "scoreline replay demo.00000007" in steps
    assert "scoreline batch status demo" in steps
    assert "scoreline replay e-a-1" in next_steps(outcome(killed=None))
