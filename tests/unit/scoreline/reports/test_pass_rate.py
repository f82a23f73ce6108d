"""The pass rate: its numerator, its denominator, and where there is none."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoreline.reports.pass_rate import PassRate, batch_pass_rate
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.errors import SpecError
from tests.batches import changed
from tests.unit.scoreline.reports.snapshots import NOW, make_snapshot

UNSCORED = '{"evaluators": []}'
counts = st.integers(0, 1_000)


@given(counts, counts, counts, counts, counts)
def test_whatever_did_not_pass_lowers_the_rate(
    passed: int, wrong: int, failed: int, timed_out: int, cancelled: int
) -> None:
    """The rate of a finished batch is passed ÷ all evaluations, and 100 % only if all passed."""
    total = passed + wrong + failed + timed_out + cancelled
    ended = {"failed": failed, "timed_out": timed_out, "cancelled": cancelled}
    over = make_snapshot(total=total, completed=passed + wrong, passed=passed, finished_at=NOW, **ended)
    rate = batch_pass_rate(over)
    assert rate.value == (passed / total if total else None)
    assert (rate.value == 1.0) == (0 < total == passed)
    if rate.value is not None and rate.interval is not None:
        assert rate.interval.low <= rate.value <= rate.interval.high


def test_rate_of_a_running_batch_is_labelled() -> None:
    """The rate of a running batch is that of ended evaluations, and is labelled `so far`."""
    running = make_snapshot(completed=8, passed=3, failed=2)
    assert batch_pass_rate(running).words() == "30.0% passed so far"
    assert batch_pass_rate(changed(running, total=10)).words() == "30.0% passed"
    assert batch_pass_rate(make_snapshot()).words() == ""


def test_a_batch_without_an_evaluator_has_no_rate() -> None:
    """Such a batch is shown as not scored."""
    rate = batch_pass_rate(make_snapshot(completed=100, passed=100, spec=UNSCORED))
    assert (rate.value, rate.interval, rate.words()) == (None, None, "not scored")
    assert str(PassRate(1, 1, 1, is_scored=False)) == "not scored"


def test_gate_needs_an_evaluator() -> None:
    """`--min-pass-rate` without an evaluator is rejected with the flag to add."""
    flags = {"mode": "simulated", "min_pass_rate": 0.5}
    assert make_plan(None, flags, folder=Path.cwd()).min_pass_rate == 0.5
    typed = {"dataset": "cases.jsonl", "targets": ["python:app:echo"], "min_pass_rate": 0.5}
    with pytest.raises(SpecError, match=r"--min-pass-rate: needs an evaluator.* --evaluator exact"):
        make_plan(None, typed, folder=Path.cwd())
