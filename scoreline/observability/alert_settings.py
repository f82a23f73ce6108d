"""Alert thresholds as settings: `EVAL_ALERT_` and the name of a threshold."""

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from scoreline.observability.thresholds import Thresholds

_USUAL = Thresholds()

Span = Annotated[float, Field(gt=0, le=30 * 86_400)]
"""Seconds."""
Share = Annotated[float, Field(ge=0, le=1)]
Rate = Annotated[float, Field(ge=0, le=1e6)]
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]


def _seconds(span: timedelta) -> float:
    return span.total_seconds()


class AlertSettings(BaseModel):
    """The thresholds of alerts; spans of time are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    alert_min_workers: Count = _USUAL.min_workers
    alert_worker_silence: Span = _seconds(_USUAL.worker_silence)
    alert_task_overdue: Span = _seconds(_USUAL.task_overdue)
    alert_backlog_drain: Span = _seconds(_USUAL.backlog_drain)
    alert_no_progress: Span = _seconds(_USUAL.no_progress)
    alert_dead_letters: Count = _USUAL.dead_letters
    alert_failure_rate: Share = _USUAL.failure_rate
    alert_failure_sample: Count = _USUAL.failure_sample
    alert_stalled_claims_per_second: Rate = _USUAL.stalled_claims_per_second
    alert_budget_share: Share = _USUAL.budget_share
    alert_rate_limit_p95: Span = _seconds(_USUAL.rate_limit_p95)
    alert_rate_limit_wait: Span = _seconds(_USUAL.rate_limit_wait)
    alert_llm_errors_per_second: Rate = _USUAL.llm_errors_per_second
    alert_llm_error_share: Share = _USUAL.llm_error_share
    alert_storage_lag: Span = _seconds(_USUAL.storage_lag)
    alert_gaps: Count = _USUAL.gaps
    alert_gap_age: Span = _seconds(_USUAL.gap_age)

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds with what was set; windows of measurement are not settings."""
        return Thresholds(
            min_workers=self.alert_min_workers,
            worker_silence=timedelta(seconds=self.alert_worker_silence),
            task_overdue=timedelta(seconds=self.alert_task_overdue),
            backlog_drain=timedelta(seconds=self.alert_backlog_drain),
            no_progress=timedelta(seconds=self.alert_no_progress),
            dead_letters=self.alert_dead_letters,
            failure_rate=self.alert_failure_rate,
            failure_sample=self.alert_failure_sample,
            stalled_claims_per_second=self.alert_stalled_claims_per_second,
            budget_share=self.alert_budget_share,
            rate_limit_p95=timedelta(seconds=self.alert_rate_limit_p95),
            rate_limit_wait=timedelta(seconds=self.alert_rate_limit_wait),
            llm_errors_per_second=self.alert_llm_errors_per_second,
            llm_error_share=self.alert_llm_error_share,
            storage_lag=timedelta(seconds=self.alert_storage_lag),
            gaps=self.alert_gaps,
            gap_age=timedelta(seconds=self.alert_gap_age),
        )
