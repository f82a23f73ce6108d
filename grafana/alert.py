"""What an alert is, and pieces that several expressions are made of."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from textwrap import dedent

from scoreline.observability.runbook import RUNBOOK, runbook_link
from scoreline.observability.thresholds import Thresholds


class Severity(StrEnum):
    """Who hears of it: critical the pager and the chat, warning the chat, info nobody who isn't looking."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert; texts are Prometheus' templates."""

    name: str
    severity: Severity
    expression: str
    lasting: timedelta
    """How long the expression must have been true."""
    summary: str
    description: str
    action: str
    """What to type first."""

    def runbook(self, base: str = RUNBOOK) -> str:
        """Link to its section of the runbook."""
        return runbook_link(self.name, base)


def time(span: timedelta) -> str:
    """Write a span as PromQL does."""
    milliseconds = round(span.total_seconds() * 1000)
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def seconds(span: timedelta) -> str:
    """Write a span as a number."""
    return f"{span.total_seconds():g}"


def lines(expression: str) -> str:
    """Take the indentation of the code off an expression."""
    return dedent(expression).strip()


def grown(metric: str, window: timedelta) -> str:
    """Count what a counter has gained, its first step too: `increase` misses that of a new series."""
    over = time(window)
    return f"sum((increase({metric}[{over}]) and {metric} offset {over}) or {metric})"


def is_working(limits: Thresholds) -> str:
    """Write: batches are running, or were when that was last told."""
    metric = 'eval_active_batches{state="running"}'
    return f"((sum({metric}) or sum(last_over_time({metric}[{time(limits.memory_window)}]))) > 0)"


def is_beating(limits: Thresholds, *, by: str = "") -> str:
    """Write: Redis has taken heartbeats."""
    kept = f" by ({by})" if by else ""
    return f"(sum{kept} (rate(eval_worker_heartbeat_total[{time(limits.beat_window)}])) > 0)"
