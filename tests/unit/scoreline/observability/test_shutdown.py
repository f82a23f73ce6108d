"""The export at the end of a process."""

import threading
import time

from scoreline.observability.shutdown import within


def test_a_shutdown_that_hangs_is_cut_short():
    """The process can end although the exporter does not answer."""
    never = threading.Event()
    started = time.monotonic()
    assert not within(0.05, never.wait)
    assert time.monotonic() - started < 5
    never.set()
    assert within(5, lambda: None)
