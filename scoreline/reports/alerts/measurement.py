"""The input and the result of an alert's check. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from scoreline.observability.thresholds import Thresholds
from scoreline.reports.alerts.window import AlertWindow
from scoreline.reports.batch_view import BatchView


class AlertInputs(NamedTuple):
    """A view of a batch, the window of earlier views, and the thresholds."""

    view: BatchView
    window: AlertWindow
    thresholds: Thresholds

    @property
    def now(self) -> datetime:
        """The time of the view, on the database's clock."""
        return self.view.snapshot.now


@dataclass(frozen=True, slots=True)
class Measurement:
    """A value that the condition of an alert compares with its threshold."""

    about: str
    """The subject; with the alert's name, its identity."""
    value: float
    fields: Mapping[str, str] = field(default_factory=dict)
    """Values of the placeholders in the message."""
    detail: str = ""
    """A sentence that is appended to the message."""
    since: datetime | None = None
    """When the condition began, where that is known."""


Check = Callable[[AlertInputs], Iterable[Measurement]]
"""Measures an alert's value for every subject of a batch; the definition's condition decides."""
