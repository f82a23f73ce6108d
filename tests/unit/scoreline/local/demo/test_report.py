"""The next steps that the demo suggests."""

from scoreline.local.demo.report import next_steps
from tests.unit.scoreline.local.demo.demo_outcomes import outcome


def test_the_next_steps_name_what_was_claimed():
    """Each command can be typed as printed, except the comparison, which needs a second batch."""
    steps = next_steps(outcome())
    assert "scoreline replay demo.00000007" in steps
    assert "scoreline batch status demo" in steps
    assert "scoreline replay e-a-1" in next_steps(outcome(killed=None))
