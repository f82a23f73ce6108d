"""Stop signals of a service, in processes of their own."""

import signal
import subprocess
import sys

import pytest

SERVICE = """
import asyncio
from eventlog.signals import on_stop_signal, stop_event

async def graceful():
    stop = stop_event()
    print("ready", flush=True)
    await stop.wait()
    print("stopped", flush=True)

async def slow():
    on_stop_signal(lambda: print("stopping", flush=True), exits_at_second=True)
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run({}())
"""


def started(service: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVICE.format(service)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_sets_the_event(number: signal.Signals) -> None:
    """The service ends by itself, with exit code 0."""
    with started("graceful") as process:
        process.send_signal(number)
        assert process.communicate(timeout=20)[0] == "stopped\n"
    assert process.returncode == 0


def test_the_second_signal_exits_immediately() -> None:
    """The first signal starts a graceful stop; the second does not wait for it."""
    with started("slow") as process:
        assert process.stdout is not None
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGINT)
        assert "second signal: exiting immediately" in process.communicate(timeout=20)[1]
    assert process.returncode == 128 + signal.SIGINT
