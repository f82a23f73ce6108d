"""Alerts about the way into the tables: lag, gaps, quarantine."""

from collections.abc import Iterator
from datetime import timedelta

from grafana.alert import Alert, Severity, grown, lines, seconds, time
from scoreline.observability.thresholds import Thresholds

MINUTE = timedelta(minutes=1)


def storage(limits: Thresholds) -> Iterator[Alert]:
    """List them."""
    yield _storage_lag(limits)
    yield _gaps_growing(limits)
    yield _quarantine_growing(limits)


def _storage_lag(limits: Thresholds) -> Alert:
    return Alert(
        name="StorageLag",
        severity=Severity.WARNING,
        expression=f"max(eval_storage_lag_seconds) > {seconds(limits.storage_lag)}",
        lasting=5 * MINUTE,
        summary="Results reach PostgreSQL late",
        description="Storage workers are {{ $value | humanizeDuration }} behind the log.",
        action="docker compose up --detach --scale storage-worker=4",
    )


def _gaps_growing(limits: Thresholds) -> Alert:
    window = time(limits.gap_window)
    bridged = grown("eval_storage_gaps_bridged_total", limits.gap_window)
    expression = f"""
        (
          sum(eval_storage_gaps_open) - sum(min_over_time(eval_storage_gaps_open[{window}])) > {limits.gaps}
          and on () max(eval_storage_gap_age_seconds) > {seconds(limits.gap_age)}
        )
        or {bridged} > {limits.gaps}
    """
    return Alert(
        name="GapsGrowing",
        severity=Severity.WARNING,
        expression=lines(expression),
        lasting=MINUTE,
        summary="Events are missing",
        description=f"{{{{ $value }}}} evaluations more than {window} ago lack an event.",
        action="scoreline batch list --status running",
    )


def _quarantine_growing(limits: Thresholds) -> Alert:
    gained = grown("eval_storage_quarantined_total", limits.quarantine_window)
    return Alert(
        name="QuarantineGrowing",
        severity=Severity.WARNING,
        expression=f"{gained} > 0",
        lasting=timedelta(),
        summary="Something was taken for no event",
        description="{{ $value | humanize }} entries were put into quarantine in the last hour.",
        action="scoreline quarantine list",
    )
