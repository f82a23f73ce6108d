"""Thresholds of alerts: divided for a test, but never below what a rate needs."""

from dataclasses import fields, replace
from datetime import timedelta

from scoreline.observability.thresholds import SHORTEST_WINDOW, Thresholds

SCRAPE = timedelta(milliseconds=200)


def test_times_are_divided_and_counts_are_kept():
    """A test takes seconds instead of minutes, with the same numbers of failures."""
    shorter = Thresholds().accelerated(60, scrape_timeout=SCRAPE)
    assert (shorter.storage_lag, shorter.no_progress) == (timedelta(seconds=1), timedelta(seconds=15))
    assert shorter.scrape_timeout == SCRAPE
    assert (shorter.dead_letters, shorter.failure_rate) == (10, 0.1)


def test_no_window_is_shorter_than_two_samples():
    """A longer one is divided like any other time."""
    thresholds = replace(Thresholds(), gap_window=SHORTEST_WINDOW * 100, beat_window=SHORTEST_WINDOW * 2)
    shorter = thresholds.accelerated(50, scrape_timeout=SCRAPE)
    assert (shorter.gap_window, shorter.beat_window) == (SHORTEST_WINDOW * 2, SHORTEST_WINDOW)
    windows = [each.name for each in fields(shorter) if each.name.endswith("window")]
    assert min(getattr(shorter, name) for name in windows) == SHORTEST_WINDOW
