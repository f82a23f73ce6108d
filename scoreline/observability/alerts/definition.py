"""What an alert is: one definition for the Prometheus rule and for `batch status --alert`. Pure.

Prometheus evaluates an alert over the metrics of the whole fleet. The command line evaluates it over the
tables and the Redis keys of one batch, without Prometheus. Both take name, severity, condition, threshold,
texts and runbook section from the same definition.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from scoreline.observability.thresholds import Thresholds

RUNBOOK = "docs/how-to/operations.md"
"""The runbook's path in the repository; EVAL_RUNBOOK_URL is where it is published."""
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Severity(StrEnum):
    """Notification routing: critical to pager and chat, warning to the chat, info to no receiver."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class Unit(StrEnum):
    """The unit of a value and of its threshold."""

    COUNT = "count"
    SHARE = "share"
    SECONDS = "seconds"
    RATE = "per second"


_TEMPLATES = {
    Unit.COUNT: "{{ $value }}",
    Unit.SHARE: "{{ $value | humanizePercentage }}",
    Unit.SECONDS: "{{ $value | humanizeDuration }}",
    Unit.RATE: "{{ $value | humanize }}",
}


class ThresholdComparison(StrEnum):
    """How a value must compare with its threshold for the condition to hold; written as in PromQL."""

    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"


@dataclass(frozen=True, slots=True)
class Condition:
    """A measured value beyond a threshold."""

    measure: str
    """What the value is."""
    unit: Unit
    threshold: str | float | None
    """The name of a field of `Thresholds`, or a constant; None where the measure alone decides."""
    comparison: ThresholdComparison = ThresholdComparison.ABOVE

    def limit(self, thresholds: Thresholds) -> float | None:
        """Return the threshold as a number; times are seconds."""
        if not isinstance(self.threshold, str):
            return self.threshold
        value = getattr(thresholds, self.threshold)
        return value.total_seconds() if isinstance(value, timedelta) else float(value)

    def holds(self, value: float, thresholds: Thresholds) -> bool:
        """Compare a value with the threshold; without one, the condition holds."""
        limit = self.limit(thresholds)
        if limit is None:
            return True
        match self.comparison:
            case ThresholdComparison.ABOVE:
                return value > limit
            case ThresholdComparison.AT_LEAST:
                return value >= limit
            case ThresholdComparison.BELOW:
                return value < limit

    def promql(self, expression: str, thresholds: Thresholds) -> str:
        """Compare a PromQL expression with the threshold."""
        limit = self.limit(thresholds)
        return expression if limit is None else f"{expression} {self.comparison} {limit:.15g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """How the command line evaluates the alert for one batch."""

    action: str
    """The `scoreline` command that an operator types first."""
    local_action: str = ""
    """The command, where the batch is of a local run, which has its own executors and coordinator."""
    hold: str = ""
    """The threshold that names how long the condition must hold while the batch is watched."""
    condition: Condition | None = None
    """The condition, where the command line can't measure what Prometheus measures."""
    message: str = ""
    """The message of that other condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertDefinition:
    """One alert. Texts have placeholders: `{value}`, `{threshold}`, `{window}` and the names of labels."""

    name: str
    severity: Severity
    condition: Condition
    summary: str
    message: str
    """What happened, and to which id."""
    action: str
    """What an operator of the composed services types first."""
    hold: timedelta = timedelta()
    """How long the condition must hold before Prometheus fires the alert."""
    window: str = ""
    """The threshold that names the time over which the value is measured."""
    detail: str = ""
    """A sentence that only Prometheus' labels can complete."""
    polled: Polled | None = None
    prometheus_only: str = ""
    """Why the command line does not evaluate it."""

    @property
    def polled_condition(self) -> Condition:
        """The condition that the command line evaluates."""
        own = self.polled.condition if self.polled else None
        return own or self.condition

    def runbook(self, base: str = RUNBOOK) -> str:
        """Link to its section of the runbook; absolute where the base is."""
        return f"{base.rstrip('/')}#{self.name.lower()}"

    def description(self, thresholds: Thresholds) -> str:
        """Write message and detail as Prometheus templates."""
        return self._template(" ".join(filter(None, (self.message, self.detail))), thresholds)

    def action_template(self) -> str:
        """Write the action as a Prometheus template."""
        return self._template(self.action, Thresholds())

    def polled_message(self, fields: Mapping[str, str]) -> str:
        """Write the message with the fields that the command line knows."""
        text = (self.polled.message if self.polled else "") or self.message
        return text.format_map(fields)

    def _template(self, text: str, thresholds: Thresholds) -> str:
        known = {"value": _TEMPLATES[self.condition.unit]}
        if (limit := self.condition.limit(thresholds)) is not None:
            known["threshold"] = f"{limit:.15g}"
        if self.window:
            known["window"] = duration(getattr(thresholds, self.window))
        return _PLACEHOLDER.sub(lambda name: known.get(name[1], f"{{{{ $labels.{name[1]} }}}}"), text)


def duration(span: timedelta) -> str:
    """Write a time as PromQL does: 90s, 5m, 1h."""
    milliseconds = round(span.total_seconds() * 1000)
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"
