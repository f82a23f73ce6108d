"""Parts of PromQL expressions that several alerts share."""

from dataclasses import replace
from datetime import timedelta

from scoreline.observability.alerts.promql import (
    has_heartbeats,
    has_running_batches,
    increase_from_zero,
    lines,
    seconds,
)
from scoreline.observability.thresholds import Thresholds


def test_a_new_series_counts_from_zero():
    """`increase` leaves out the first value, which is used where the series is younger than the window."""
    expression = increase_from_zero("errors_total", timedelta(minutes=5))
    assert expression == "sum((increase(errors_total[5m]) and errors_total offset 5m) or errors_total)"


def test_heartbeats_are_summed_by_a_label_or_over_all():
    """The window is that of the thresholds."""
    thresholds = replace(Thresholds(), beat_window=timedelta(seconds=30))
    rate = "(rate(eval_worker_heartbeat_total[30s])) > 0)"
    assert has_heartbeats(thresholds) == f"(sum {rate}"
    assert has_heartbeats(thresholds, by="worker_id") == f"(sum by (worker_id) {rate}"


def test_batches_of_a_coordinator_that_is_down_are_remembered():
    """The last report within the window stands in for a missing one."""
    thresholds = replace(Thresholds(), memory_window=timedelta(hours=2))
    assert 'last_over_time(eval_active_batches{state="running"}[2h])' in has_running_batches(thresholds)


def test_numbers_and_lines_are_written_plainly():
    """Fractions of a second are kept; the indentation of the code is not."""
    assert [seconds(timedelta(seconds=number)) for number in (90, 0.25)] == ["90", "0.25"]
    assert lines("\n    sum(a)\n      > 1\n    ") == "sum(a)\n  > 1"
