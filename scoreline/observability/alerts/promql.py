"""Parts that several PromQL expressions share."""

from collections.abc import Callable
from datetime import timedelta
from textwrap import dedent

from scoreline.observability.alerts.definition import AlertDefinition, duration
from scoreline.observability.thresholds import Thresholds

Expression = Callable[[AlertDefinition, Thresholds], str]
"""Writes the expression of an alert's rule."""


def seconds(span: timedelta) -> str:
    """Write a time as a number of seconds."""
    return f"{span.total_seconds():g}"


def lines(expression: str) -> str:
    """Remove the indentation of the code from an expression."""
    return dedent(expression).strip()


def increase_from_zero(metric: str, window: timedelta) -> str:
    """Sum a counter's increase, including the first value of a new series, which `increase` leaves out."""
    over = duration(window)
    return f"sum((increase({metric}[{over}]) and {metric} offset {over}) or {metric})"


def has_running_batches(thresholds: Thresholds) -> str:
    """Write: batches are running, or were when a coordinator last reported them."""
    metric = 'eval_active_batches{state="running"}'
    memory = duration(thresholds.memory_window)
    return f"((sum({metric}) or sum(last_over_time({metric}[{memory}]))) > 0)"


def has_heartbeats(thresholds: Thresholds, *, by: str = "") -> str:
    """Write: Redis has accepted heartbeats."""
    kept = f" by ({by})" if by else ""
    window = duration(thresholds.beat_window)
    return f"(sum{kept} (rate(eval_worker_heartbeat_total[{window}])) > 0)"
