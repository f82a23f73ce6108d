"""Metrics of model calls."""

import pytest

from executor.contract import RateLimited, Transient
from executor.targets.telemetry import counting_errors
from tests.telemetry import measuring


def test_faults_are_counted_by_provider_and_kind_and_raised():
    """A call that succeeds is not counted, nor is an error that is no fault of the call."""
    with measuring() as measured:
        with pytest.raises(RateLimited), counting_errors("telemetry-test"):
            raise RateLimited("slower")
        for _ in range(2):
            with pytest.raises(Transient), counting_errors("telemetry-test"):
                raise Transient("http_500")
        with counting_errors("telemetry-test"):
            pass
        with pytest.raises(KeyError), counting_errors("telemetry-test"):
            raise KeyError("x")
    assert measured["eval_llm_errors_total", "rate_limited", "telemetry-test"] == 1
    assert measured["eval_llm_errors_total", "http_500", "telemetry-test"] == 2
