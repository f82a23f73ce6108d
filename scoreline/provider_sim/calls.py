"""A call's way through the simulator: checked, taken on, struck by a fault or not, answered in its time."""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from itertools import count

from scoreline.provider_sim.answers import ModelRequest, SimulatedAnswer, answer
from scoreline.provider_sim.faults import draw_fault, draw_latency, luck
from scoreline.provider_sim.http_messages import (
    ApiError,
    ConnectionAborted,
    HttpReply,
    HttpRequest,
    Json,
    in_json,
    invalid,
)
from scoreline.provider_sim.limits import CallWeight, SimulatedLane, SimulatedLanes
from scoreline.provider_sim.provider_api import ProviderApi
from scoreline.provider_sim.replies import streamed_reply, whole_reply
from scoreline.provider_sim.settings import SimulatedRateLimits, SimulatorSettings
from scoreline.provider_sim.stats import CallStats

_FIRST_WORD = 1 / 3
"""When a stream begins, as a share of the time the whole answer takes."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What becomes of a call that was taken on."""

    fault: str | None
    latency: float


class CallHandler:
    """Answers single calls, in any dialect."""

    def __init__(
        self, settings: SimulatorSettings, *, clock: Callable[[], float], wall: Callable[[], datetime]
    ) -> None:
        self.settings = settings
        self.stats = CallStats()
        self.wall = wall
        self._clock = clock
        self._began = clock()
        self._lanes = SimulatedLanes()
        self._names = count(1)
        self._birth = int(wall().timestamp())

    def reset(self) -> None:
        """Forget what was seen and what was charged; what is under way stays."""
        self.stats.forget()
        self._lanes = SimulatedLanes()
        self._began = self._clock()

    def name(self) -> str:
        """Name something new: no simulator before or after this one uses the name."""
        return f"01sim{self._birth:010d}{next(self._names):09d}"

    async def serve(self, request: HttpRequest, dialect: ProviderApi) -> HttpReply:
        """Answer a call, refuse it, or let it meet its fault."""
        headers = {dialect.request_id_header: f"req_{self.name()}"}
        try:
            ask, said = self._understood(request, dialect)
            self._admit(ask, said, key=request.key, dialect=dialect, headers=headers)
            return await self._answer(ask, said, dialect=dialect, headers=headers)
        except ApiError as refused:
            body = dialect.error(refused, headers[dialect.request_id_header])
            return in_json(refused.status, body, headers)

    def check_key(self, key: str) -> None:
        """Refuse who has no key, or one that is not known."""
        known = self.settings.access.keys
        if not key:
            raise ApiError(401, "authentication_error", "x-api-key header is required")
        if known and key not in known:
            raise ApiError(401, "authentication_error", "invalid x-api-key", code="invalid_api_key")

    def _check_ask(self, ask: ModelRequest) -> None:
        access = self.settings.access
        if access.models and ask.model not in access.models:
            raise ApiError(404, "not_found_error", f"model: {ask.model}", code="model_not_found")
        if ask.model in access.forbidden_models:
            raise ApiError(403, "permission_error", f"Your API key may not use the model {ask.model}")
        if ask.input_tokens > access.context_tokens:
            raise invalid(
                f"prompt is too long: {ask.input_tokens} tokens > {access.context_tokens} maximum",
                param="messages",
                code="context_length_exceeded",
            )

    def understand(self, params: Json, dialect: ProviderApi) -> tuple[ModelRequest, SimulatedAnswer]:
        """Read a request and think of the answer."""
        try:
            ask = dialect.read(params)
            said = answer(ask, self.settings.answers)
        except (AttributeError, TypeError, KeyError):
            # Deep inside, something is of a kind that no check has thought of.
            raise invalid("The request is not of the expected form") from None
        self._check_ask(ask)
        return ask, said

    def _understood(
        self, request: HttpRequest, dialect: ProviderApi
    ) -> tuple[ModelRequest, SimulatedAnswer]:
        self.check_key(request.key)
        dialect.check_headers(request.headers)
        params = read_json(request)
        understood = self.understand(params, dialect)
        self.stats.bodies.append(params)
        return understood

    def _admit(
        self,
        ask: ModelRequest,
        said: SimulatedAnswer,
        *,
        key: str,
        dialect: ProviderApi,
        headers: dict[str, str],
    ) -> None:
        """Take the call on, or say at once when to come again; how the limits stand is said either way."""
        limits, now, lane = self.settings.limits, self._clock(), self._lane(key, ask.model)
        if limits.concurrency and self.stats.in_flight >= limits.concurrency:
            headers |= {"retry-after": "1", **self._standings(lane, dialect)}
            raise _limited("concurrent connections", code="requests")
        short = lane.admit(CallWeight(ask.input_tokens, said.output_tokens), now=now)
        headers |= self._standings(lane, dialect)
        if short:
            headers["retry-after"] = _retry_after(short.retry_after, limits)
            raise _limited(f"{short.kind.replace('-', ' ')} per minute", code=short.kind)
        self.stats.admitted[int(now - self._began)] += 1

    def _lane(self, key: str, model: str) -> SimulatedLane:
        hashed = blake2b(key.encode(), digest_size=8).hexdigest()
        return self._lanes.lane(self.settings.limits, key=hashed, model=model, now=self._clock())

    def _standings(self, lane: SimulatedLane, dialect: ProviderApi) -> Mapping[str, str]:
        if not self.settings.limits.limit_headers:
            return {}
        return dialect.limit_headers(lane.standings(self._clock()), self.wall())

    def _fate(self, ask: ModelRequest) -> CallPlan:
        about = (self.settings.answers.seed, ask.digest, self.stats.visited(ask.digest))
        fault = draw_fault(self.settings.faults, streamed=ask.streamed, fortune=luck(*about, "fault"))
        if fault:
            self.stats.faults[fault] += 1
        return CallPlan(fault, draw_latency(self.settings.latency, luck(*about, "latency")))

    async def _answer(
        self, ask: ModelRequest, said: SimulatedAnswer, *, dialect: ProviderApi, headers: dict[str, str]
    ) -> HttpReply:
        """Let the call take its time; it is under way until the last word has been sent."""
        fate = self._fate(ask)
        if fate.fault == "overloaded":
            raise dialect.overloaded
        self.stats.began()
        try:
            await asyncio.sleep(fate.latency * (_FIRST_WORD if ask.streamed else 1))
            reply = self._reply(ask, said, fate=fate, dialect=dialect, headers=headers)
        except BaseException:
            self.stats.ended()
            raise
        return replace(reply, done=self.stats.ended)

    def _reply(
        self,
        ask: ModelRequest,
        said: SimulatedAnswer,
        *,
        fate: CallPlan,
        dialect: ProviderApi,
        headers: dict[str, str],
    ) -> HttpReply:
        if fate.fault == "server_error":
            raise dialect.broken
        if fate.fault == "reset_before":
            raise ConnectionAborted(fate.fault)
        if fate.fault is None:
            self.stats.answer(ask.digest, ask.input_tokens, said.output_tokens)
        name, created = self.name(), int(self.wall().timestamp())
        if not ask.streamed:
            body = dialect.whole(ask, said, name=name, created=created)
            return whole_reply(body, headers, fault=fate.fault)
        return streamed_reply(
            list(dialect.stream(ask, said, name=name, created=created)),
            headers,
            fault=fate.fault,
            error=dialect.stream_error(),
            seconds=fate.latency * (1 - _FIRST_WORD),
        )


def read_json(request: HttpRequest) -> Json:
    """Read the body, if it is one."""
    if request.too_large:
        raise ApiError(413, "request_too_large", "Request exceeds the maximum size")
    try:
        return request.json()
    except (ValueError, RecursionError):
        raise invalid("The request body is not valid JSON") from None


def _limited(what: str, *, code: str) -> ApiError:
    message = f"This request would exceed your organization's rate limit: {what}"
    return ApiError(429, "rate_limit_error", message, code=code)


def _retry_after(seconds: float, limits: SimulatedRateLimits) -> str:
    return f"{seconds:.3f}" if limits.fractional_retry_after else str(max(1, math.ceil(seconds)))
