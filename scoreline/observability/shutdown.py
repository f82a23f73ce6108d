"""Shutdown of exporters with a deadline: an unreachable collector must not delay the end of a process."""

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)

SHUTDOWN_TIMEOUT = 1.0
"""Seconds; exporters retry an unreachable collector for much longer."""


def within(seconds: float, shutdown: Callable[[], object]) -> bool:
    """Run a shutdown that may block; returns whether it finished in time."""
    thread = threading.Thread(target=shutdown, name="telemetry-shutdown", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        logger.warning("telemetry could not be exported before shutdown")
    return not thread.is_alive()
