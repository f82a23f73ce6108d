"""The control API: settings, counts and outages at run time, below `/_sim/`."""

from collections.abc import Callable

from scoreline.provider_sim.calls import CallHandler, read_json
from scoreline.provider_sim.http_messages import ApiError, HttpReply, HttpRequest, in_json, invalid
from scoreline.provider_sim.message_batches import MessageBatches
from scoreline.provider_sim.settings import InvalidSimulatorSettings, changed, flat

PATH = "/_sim/"


class ControlApi:
    """Implements the control API."""

    def __init__(
        self,
        calls: CallHandler,
        batches: MessageBatches,
        *,
        reset: Callable[[], None],
        outage: Callable[[float], None],
    ) -> None:
        self._calls = calls
        self._batches = batches
        self._reset = reset
        self._outage = outage

    async def answer(self, request: HttpRequest) -> HttpReply:
        """Read or change settings, reset counts, or start an outage."""
        match request.method, request.path.removeprefix(PATH):
            case "GET", "settings":
                return in_json(200, flat(self._calls.settings))
            case "POST", "settings":
                return self._change(read_json(request))
            case "GET", "stats":
                return in_json(200, self._calls.stats.listed())
            case "POST", "reset":
                self._reset()
                return in_json(200, {})
            case "POST", "finish-batches":
                return in_json(200, {"finished": self._batches.finish()})
            case "POST", "outage":
                return self._go_out(read_json(request))
            case _:
                raise ApiError(404, "not_found_error", f"no {request.method} {request.path}")

    def _change(self, changes: object) -> HttpReply:
        if not isinstance(changes, dict):
            raise invalid("settings: an object, please")
        try:
            self._calls.settings = changed(self._calls.settings, changes)
        except InvalidSimulatorSettings as error:
            raise invalid(str(error)) from None
        return in_json(200, flat(self._calls.settings))

    def _go_out(self, wanted: object) -> HttpReply:
        seconds = wanted.get("seconds") if isinstance(wanted, dict) else None
        if not isinstance(seconds, int | float) or not 0 <= seconds <= 86_400:
            raise invalid("seconds: a number from 0 to 86400")
        self._outage(seconds)
        return in_json(200, {"seconds": seconds})
