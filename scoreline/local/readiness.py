"""A process that a manager started: how it reports that it has started, and that it can't."""

import os
from collections.abc import Callable

READY_FD = "SCORELINE_READY_FD"
"""Names the descriptor by which a child reports that it has started."""
UNAVAILABLE = 69
"""Exit code (EX_UNAVAILABLE) of a child whose server is unavailable: it is restarted until it is back."""


def ready_report() -> Callable[[], None]:
    """Return what a child calls once it has started; it does nothing where no manager waits for it."""
    report_to = os.environ.pop(READY_FD, None)

    def report() -> None:
        if report_to is not None:
            os.write(int(report_to), b"r")
            os.close(int(report_to))

    return report
