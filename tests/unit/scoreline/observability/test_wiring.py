"""Which telemetry a process exports, where it registers its port, and how spans are read from files."""

import re
from pathlib import Path

import pytest

from providers.extras import install_command
from scoreline.command_error import CommandError
from scoreline.observability.wiring import ENDPOINT, Service, TelemetryPlan, check_installed, telemetry_plan
from scoreline.settings import Settings


def test_telemetry_is_off_by_default():
    """A folder for target files has no effect without a port."""
    assert not telemetry_plan(Service.EXECUTOR, Settings(metrics_dir=Path("m")), {}).anything
    assert telemetry_plan(Service.EXECUTOR, Settings(metrics_port=0), {}) == TelemetryPlan(
        False, True, False
    )
    assert telemetry_plan(Service.EXECUTOR, Settings(trace_dir=Path("t")), {}) == TelemetryPlan(
        False, False, True
    )


def test_a_collector_is_preferred_to_a_port():
    """Metrics are exported once."""
    plan = telemetry_plan(
        Service.EXECUTOR, Settings(metrics_port=9_464), {ENDPOINT: "http://127.0.0.1:4318"}
    )
    assert plan == TelemetryPlan(True, False, False)


def test_a_submitting_process_takes_no_port():
    """The port belongs to the processes it starts."""
    assert not telemetry_plan(Service.SUBMITTER, Settings(metrics_port=9_464), {}).anything


def test_missing_packages_are_named_with_the_way_to_get_them():
    """A missing package is an error with the install command, not a traceback."""
    with pytest.raises(CommandError, match=re.escape(install_command("otel"))):
        check_installed(lambda _name: None)
    check_installed()
