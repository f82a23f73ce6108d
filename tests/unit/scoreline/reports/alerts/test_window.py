"""Rates of the last minutes."""

from tests.unit.scoreline.reports.alerts.views import at, firing


def test_a_failure_rate_is_that_of_the_last_minutes():
    """Failures at the start of a batch do not fire for ever; failures now do."""
    start = at(0, failed=10, completed=10)
    then = [at(60 * n, failed=10, completed=10 + 20 * n) for n in range(1, 20)]
    assert firing(start) == ["HighFailureRate"]
    assert firing(start, *then) == []
    assert firing(start, *then, at(1260, failed=150, completed=390)) == ["DLQGrowing", "HighFailureRate"]
