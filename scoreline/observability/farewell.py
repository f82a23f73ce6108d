"""Saying what is left to say, without waiting long for somebody who does not listen."""

import logging
import threading
from collections.abc import Callable

logger = logging.getLogger(__name__)

PATIENCE = 1.0
"""Seconds; a collector that is gone would be tried for many."""


def within(seconds: float, say: Callable[[], object]) -> bool:
    """Do something that may hang; says whether it was done in time."""
    speaker = threading.Thread(target=say, name="telemetry-farewell", daemon=True)
    speaker.start()
    speaker.join(seconds)
    if speaker.is_alive():
        logger.warning("telemetry could not be delivered before the end")
    return not speaker.is_alive()
