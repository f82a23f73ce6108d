"""The simulator as a whole."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from eventlog.clock import utc_now
from scoreline.provider_sim.anthropic_messages import AnthropicMessages
from scoreline.provider_sim.calls import CallHandler
from scoreline.provider_sim.control import PATH as CONTROL
from scoreline.provider_sim.control import ControlApi
from scoreline.provider_sim.http_messages import (
    ApiError,
    ConnectionAborted,
    HttpReply,
    HttpRequest,
    in_json,
)
from scoreline.provider_sim.message_batches import MessageBatches
from scoreline.provider_sim.openai_chat import OpenAIChat
from scoreline.provider_sim.routes import Answering, Routes, largest
from scoreline.provider_sim.server import SimulatorServer
from scoreline.provider_sim.settings import SimulatorSettings, changed
from scoreline.provider_sim.stats import CallStats


class Simulator:
    """A provider on a port of this machine."""

    def __init__(self, settings: SimulatorSettings) -> None:
        self._clock = asyncio.get_running_loop().time
        self._calls = CallHandler(settings, clock=self._clock, utc_now=utc_now)
        self._batches = MessageBatches(self._calls)
        self._control = ControlApi(self._calls, self._batches, reset=self.reset, outage=self.go_out)
        self._routes = Routes(self._calls, self._batches)
        self._server = SimulatorServer(self._handle, largest=largest)
        self._out_until = 0.0
        self.base_url = ""

    @property
    def settings(self) -> SimulatorSettings:
        """The current settings."""
        return self._calls.settings

    @property
    def stats(self) -> CallStats:
        """The counts of received calls."""
        return self._calls.stats

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return self._server.connections

    def change(self, **changes: object) -> None:
        """Behave differently from now on; the names are those of the settings."""
        self._calls.settings = changed(self._calls.settings, changes)

    def reset(self) -> None:
        """Reset all counts and delete all batches."""
        self._calls.reset()
        self._batches.close()

    def finish_batches(self) -> int:
        """End all batches in progress, now."""
        return self._batches.finish()

    def go_out(self, seconds: float) -> None:
        """Break all connections, and each new one, for so long; 0 ends an outage."""
        self._out_until = self._clock() + seconds
        if seconds > 0:
            self._server.reset_all()

    async def listen(self, host: str, port: int) -> None:
        """Begin to answer."""
        chosen = await self._server.listen(host, port)
        self.base_url = f"http://{f'[{host}]' if ':' in host else host}:{chosen}"

    async def close(self) -> None:
        """End."""
        await self._server.close()
        self._batches.close()

    async def _handle(self, request: HttpRequest) -> HttpReply:
        if request.path.startswith(CONTROL):
            return await self._refusing(request, lambda: self._control.answer(request))
        if self._clock() < self._out_until:
            self.stats.calls["any", "outage"] += 1
            raise ConnectionAborted("outage")
        endpoint, answering = self._routes.find(request)
        try:
            reply = await self._refusing(request, answering)
        except ConnectionAborted as broken:
            self.stats.calls[endpoint, broken.name] += 1
            raise
        self.stats.calls[endpoint, str(reply.status)] += 1
        return reply

    async def _refusing(self, request: HttpRequest, answering: Answering) -> HttpReply:
        """Handle a request, or reject it in the format of its API."""
        try:
            return await answering()
        except ApiError as refused:
            name = f"req_{self._calls.name()}"
            api = AnthropicMessages() if "anthropic-version" in request.headers else OpenAIChat()
            headers = {api.request_id_header: name}
            return in_json(refused.status, api.error(refused, name), headers)


@asynccontextmanager
async def simulated(
    settings: SimulatorSettings, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[Simulator]:
    """Run a simulator in this process as a context."""
    simulator = Simulator(settings)
    await simulator.listen(host, port)
    try:
        yield simulator
    finally:
        await simulator.close()
