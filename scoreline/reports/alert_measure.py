"""What an alert measures: a value, the threshold it is beyond, and the severity of the alert. Pure."""

from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from scoreline.formatting import span

CRITICAL = frozenset({"AllWorkersDown", "WorkerDown", "CoordinatorDown", "RedisDown", "PostgresDown"})
INFO = frozenset({"RateLimitSaturation"})


class Unit(StrEnum):
    """The unit of a value and of its threshold."""

    COUNT = "count"
    SHARE = "share"
    SECONDS = "seconds"


class Measure(NamedTuple):
    """A measured value and its threshold."""

    value: float
    threshold: float | None
    unit: Unit = Unit.COUNT


def lasting(value: timedelta, threshold: timedelta) -> Measure:
    """Measure a span of time."""
    return Measure(value.total_seconds(), threshold.total_seconds(), Unit.SECONDS)


def share(value: float, threshold: float) -> Measure:
    """Measure a share of a whole."""
    return Measure(value, threshold, Unit.SHARE)


def severity_of(alert: str) -> str:
    """Return the severity that Prometheus' rule of the same name has."""
    if alert in CRITICAL:
        return "critical"
    return "info" if alert in INFO else "warning"


def written(value: float | None, unit: Unit) -> str:
    """Write a value for people."""
    match unit:
        case _ if value is None:
            return "-"
        case Unit.SHARE:
            return f"{value:.0%}"
        case Unit.SECONDS:
            return span(timedelta(seconds=round(value)))
        case Unit.COUNT:
            return f"{value:,.0f}"
