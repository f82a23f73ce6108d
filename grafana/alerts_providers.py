"""Alerts about those who are asked for answers: limits, errors, breakers."""

from collections.abc import Iterator
from datetime import timedelta

from grafana.alert import Alert, Severity, lines, time
from scoreline.observability.thresholds import Thresholds

MINUTE = timedelta(minutes=1)


def providers(limits: Thresholds) -> Iterator[Alert]:
    """List them."""
    yield _rate_limit_saturation(limits)
    yield _llm_api_errors(limits)
    yield _breaker_open()


def _rate_limit_saturation(limits: Thresholds) -> Alert:
    # Without a permit there is no wait to measure: a lane that only refuses waits for ever.
    window = time(limits.provider_window)
    expression = f"""
        histogram_quantile(0.95, sum by (lane, le) (rate(eval_rate_limit_wait_ms_bucket[{window}]))) / 1000
        > {limits.rate_limit_p95.total_seconds():g}
        or Inf * (
          sum by (lane) (rate(eval_rate_limit_refused_total{{why!="breaker"}}[{window}])) > 0
          unless on (lane) sum by (lane) (rate(eval_rate_limit_acquired_total[{window}])) > 0
        )
    """
    return Alert(
        name="RateLimitSaturation",
        severity=Severity.INFO,
        expression=lines(expression),
        lasting=10 * MINUTE,
        summary="Executors wait for a rate limit",
        description=(
            "One call in twenty waits {{ $value | humanizeDuration }} or more for {{ $labels.lane }}."
        ),
        action="scoreline batch list --status running",
    )


def _llm_api_errors(limits: Thresholds) -> Alert:
    window = time(limits.provider_window)
    errors = f"rate(eval_llm_errors_total[{window}])"
    calls = f"sum(rate(eval_rate_limit_acquired_total[{window}]))"
    expression = f"""
        sum by (provider, kind) ({errors}) > {limits.llm_errors_per_second}
        unless on () sum({errors}) < {limits.llm_error_share} * {calls}
    """
    return Alert(
        name="LLMAPIErrors",
        severity=Severity.WARNING,
        expression=lines(expression),
        lasting=5 * MINUTE,
        summary="Calls to a model fail",
        description=(
            "{{ $value | humanize }} calls a second to {{ $labels.provider }} fail: {{ $labels.kind }}."
        ),
        action="docker compose logs --since 15m executor",
    )


def _breaker_open() -> Alert:
    return Alert(
        name="BreakerOpen",
        severity=Severity.WARNING,
        expression="max by (lane) (eval_lane_breaker_state) > 0",
        lasting=MINUTE,
        summary="A provider is left alone for a while",
        description="The breaker of {{ $labels.lane }} has opened: its calls failed one after the other.",
        action="scoreline batch list --status running",
    )
