"""The simulator as a program: starts, prints its address, and serves until it is stopped."""

from collections.abc import Callable

from eventlog.signals import stop_event
from scoreline.command_error import CommandError
from scoreline.provider_sim.settings import SimulatorSettings
from scoreline.provider_sim.simulator import simulated


async def run_until_stopped(
    settings: SimulatorSettings, *, host: str, port: int, announce: Callable[[str], None]
) -> None:
    """Serve until SIGINT or SIGTERM; `announce` receives the base URL once the server listens."""
    stop = stop_event()
    try:
        async with simulated(settings, host=host, port=port) as simulator:
            announce(simulator.base_url)
            await stop.wait()
    except OSError as error:
        raise CommandError(
            f"can't listen on {host}:{port}: {error.strerror or error}; try --port 0"
        ) from error
