"""Graceful shutdown of a service: SIGINT and SIGTERM ask it to stop.

Every service and every long-running command handles its signals here. A local run has more to do, because
it pauses its batch first: see `scoreline/local/interruption.py`.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable

logger = logging.getLogger(__name__)

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def stop_event() -> asyncio.Event:
    """Return an event that the first stop signal sets; further signals change nothing."""
    stop = asyncio.Event()
    on_stop_signal(stop.set)
    return stop


def on_stop_signal(stop: Callable[[], None], *, exits_at_second: bool = False) -> None:
    """Call `stop` in the running event loop at the first stop signal; a second one may exit the process."""
    received: list[int] = []

    def receive(number: int) -> None:
        if received and exits_at_second:
            logger.warning("second signal: exiting immediately")
            os._exit(128 + number)
        received.append(number)
        stop()

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, receive, number)
