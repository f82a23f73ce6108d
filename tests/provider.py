"""A provider for tests: the simulator in this process, on a free port.

    async with provider(rpm=600, mode="echo") as sim:
        ...ask sim.base_url (for OpenAI f"{sim.base_url}/v1") with any key...
        sim.change(overloaded=0.5)                 # names: scoreline/provider_sim/settings.py
        assert sim.stats.of("/v1/messages", 200) == 3
        assert sim.stats.bodies[-1]["messages"]    # what was asked last
        sim.finish_batches(); sim.go_out(2); sim.go_out(0); sim.reset()

Endpoints are counted as /v1/messages, /v1/chat/completions, /v1/models and batches.create, .list,
.retrieve, .cancel, .delete, .results, by status or, where the connection was broken, by the fault.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scoreline.provider_sim.settings import SimulatorSettings, changed
from scoreline.provider_sim.simulator import Simulator, simulated


@asynccontextmanager
async def provider(**settings: object) -> AsyncIterator[Simulator]:
    """Run a simulator with these settings."""
    async with simulated(changed(SimulatorSettings(), settings)) as simulator:
        yield simulator
