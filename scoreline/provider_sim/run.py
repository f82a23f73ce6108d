"""The simulator as a program: begins, says where it is, and goes on until it is told to stop."""

from collections.abc import Callable

from eventlog.signals import stop_event
from scoreline.problem import Problem
from scoreline.provider_sim.settings import SimulatorSettings
from scoreline.provider_sim.simulator import simulated


async def run_until_stopped(
    settings: SimulatorSettings, *, host: str, port: int, announce: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; `announce` hears the base URL once it answers."""
    stop = stop_event()
    try:
        async with simulated(settings, host=host, port=port) as simulator:
            announce(simulator.base_url)
            await stop.wait()
    except OSError as error:
        raise Problem(f"can't listen on {host}:{port}: {error.strerror or error}; try --port 0") from error
