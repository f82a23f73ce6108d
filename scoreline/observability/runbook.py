"""Where each alert is explained."""

RUNBOOK = "docs/how-to/operations.md"
"""The runbook's path in the repository; EVAL_RUNBOOK_URL is where it is published."""


def runbook_link(alert: str, base: str = RUNBOOK) -> str:
    """Link to an alert's section of the runbook; absolute where the base is."""
    return f"{base.rstrip('/')}#{alert.lower()}"
