"""Settings from the environment: limits that other packages share."""

from pathlib import Path

import pytest

from domain.batch_spec import Limits
from executor.settings import MAX_NAME, ExecutorSettings
from scoreline.settings import RateLimitMode, SettingsError, load_settings


def test_an_executor_accepts_every_name_that_the_settings_accept():
    """One limit: a name is not accepted from the environment and rejected by the executor."""
    longest = "w" * MAX_NAME
    accepted = load_settings({"EVAL_WORKER_ID": longest})
    assert accepted.worker_id == longest
    assert ExecutorSettings(longest, slots=accepted.worker_concurrency).name == longest
    with pytest.raises(SettingsError, match=f"EVAL_WORKER_ID: .* at most {MAX_NAME} characters"):
        load_settings({"EVAL_WORKER_ID": longest + "w"})


def test_settings_of_rate_limits():
    """Each setting has its default and its bounds."""
    made = load_settings({})
    assert (made.rate_limit_mode, made.limits) == (RateLimitMode.DISTRIBUTED, Limits())
    assert (made.rate_limit_breaker_failures, made.rate_limit_breaker_seconds, made.prices) == (5, 30, None)
    made = load_settings({"EVAL_RATE_LIMIT_MODE": "per_worker", "EVAL_PRICES": "prices.yaml"})
    assert (made.rate_limit_mode, made.prices) == (RateLimitMode.PER_WORKER, Path("prices.yaml"))
    for name, value in (("RPM", "0"), ("MODE", "alone"), ("BREAKER_FAILURES", "0"), ("DELAY", "-1")):
        with pytest.raises(SettingsError, match=f"EVAL_RATE_LIMIT_{name}"):
            load_settings({f"EVAL_RATE_LIMIT_{name}": value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("EVAL_METRICS_PORT", "70000"), ("EVAL_TRACE_RATIO", "1.5"), ("EVAL_TRACE_DIRS", "x")],
)
def test_settings_that_make_no_sense_are_refused(name, value):
    """The error names the setting."""
    with pytest.raises(SettingsError, match=name):
        load_settings({name: value})
